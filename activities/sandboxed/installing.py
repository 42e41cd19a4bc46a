"""One set-up in the sandbox: what it would be made with, its command, and what that left, unpacked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from activities.sandboxed.bench import Bench, waived
from activities.sandboxed.equipment import tool_folders
from domain.build.project import Project
from domain.environment.failure import refused_hosts, said_last, setup_failure
from domain.environment.inside import setup_variables, tools
from domain.environment.project import Setup
from domain.errors import ResourceShort, SetupFailed
from domain.ports.sandbox import Collect, Egress, SandboxResult, SandboxRun

# Told by the sandbox itself: it is what the set-up and every later run will have. The programs are its arguments.
_LOOK = (
    "cat /etc/os-release /usr/lib/os-release 2>/dev/null | sort -u; uname -m; "
    'for tool; do command -v "$tool" && { "$tool" --version || "$tool" version; } 2>/dev/null; done; true'
)
_LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A tar of the folder that the command left, and all that it printed."""

    tar: Path
    output: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """``label`` names the attempt."""

    bench: Bench
    project: Project
    setup: Setup
    label: str
    allow_missing: tuple[str, ...] = ()

    async def tools(self) -> str:
        """The system and the versions of the tools that a set-up would be made with, as the sandbox has them.

        Raises IsolationMissing, ResourceShort, InvalidInput.
        """
        with self.bench.outputs(f"{self.label}/look") as outputs:
            run = replace(
                self._run("look", ("sh", "-c", _LOOK, "look", *tools(self.setup)), _empty(outputs), outputs / "log"),
                toolchain=tool_folders(self.project, self.bench.toolchain),
                seconds=_LOOK_SECONDS,
            )
            result = await self.bench.sandbox.run(run)
            said = await asyncio.to_thread((outputs / "log").read_text, errors="replace")
        if result.ended != "exited" or result.exit_code:
            raise ResourceShort(f"the sandbox could not tell what tools it has: {said[-300:].strip()}")
        return said

    @asynccontextmanager
    async def installed(self, folder: Path) -> AsyncIterator[Installed | SetupFailure]:
        """Run the command on the checkout ``folder``; what it left is there as long as the context is open.

        Raises IsolationMissing, ResourceShort, InvalidInput, TooLarge.
        """
        limits = self.project.limits
        with self.bench.outputs(self.label) as outputs:
            bare = self._run("run", self.setup.command, folder, outputs / "log")
            run = replace(
                bare,
                toolchain=tool_folders(self.project, self.bench.toolchain),
                environment=setup_variables(self.setup),
                # What is installed is in memory at first, beside what installs it.
                memory_bytes=limits.test_memory_bytes + limits.environment_bytes,
                scratch_bytes=limits.test_scratch_bytes + limits.environment_bytes,
                egress=Egress(hosts=self.setup.registries, socket=outputs / "egress"),
                collect=Collect(folder=self.setup.folder, into=outputs / "tar", most_bytes=limits.environment_bytes),
            )
            result = await self.bench.sandbox.run(run)
            output = await asyncio.to_thread(run.log.read_bytes)
            failure = self._failure(result, output)
            yield (
                SetupFailure(sentence=failure, output=output)
                if failure
                else Installed(tar=outputs / "tar", output=output)
            )

    async def unpack(self, tar: Path, into: Path) -> None:
        """Fill the empty folder ``into``, in a sandbox that sees nothing else: the tar comes from a run.

        Raises SetupFailed for a tar that cannot be unpacked, and as the sandbox's port does.
        """
        with self.bench.outputs(f"{self.label}/unpack") as outputs:
            run = replace(self._run("unpack", ("true",), tar, outputs / "log"), kept=into)
            result = await self.bench.sandbox.run(run)
        if result.exit_code or result.ended != "exited":
            raise SetupFailed(f"what the set-up command left in {self.setup.folder} cannot be unpacked")

    def _run(self, step: str, argv: tuple[str, ...], folder: Path, log: Path) -> SandboxRun:
        limits = self.project.limits
        return SandboxRun(
            label=f"{self.bench.folder}:{self.label}/{step}",
            argv=argv,
            folder=folder,
            log=log,
            seconds=limits.setup_seconds,
            memory_bytes=limits.test_memory_bytes,
            processes=limits.test_processes,
            log_bytes=limits.test_log_bytes,
            allow_missing=waived(self.project, self.allow_missing),
        )

    def _failure(self, result: SandboxResult, output: bytes) -> str:
        text, refused = output.decode(errors="replace"), result.refused_hosts
        failure = setup_failure(ended=result.ended, exit_code=result.exit_code, output=text, refused=refused)
        if failure or result.collected:
            return failure
        left = f"the set-up command left no folder {self.setup.folder!r}"
        return f"{left}{refused_hosts(refused)}{said_last(text)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFailure:
    """Why there is nothing, and all that the command printed."""

    sentence: str
    output: bytes


def _empty(outputs: Path) -> Path:
    folder = outputs / "empty"
    folder.mkdir(mode=0o755)
    return folder
