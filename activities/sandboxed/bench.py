"""Where runs happen: one command on a checkout, within its project's limits, with what the project has set up."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.intake import Engine
from activities.sandboxed.equipment import with_dependencies
from domain.build.project import Project
from domain.errors import SetupFailed
from domain.ports.blobs import Blobs
from domain.ports.kept.environments import KeptEnvironments
from domain.ports.sandbox import Collect, Outlet, Sandbox, SandboxResult, SandboxRun
from domain.ports.workspace import Workspaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A sandbox run, what it printed, and the tar that was taken out of it."""

    result: SandboxResult
    output: bytes
    collected: Path | None = None

    @property
    def text(self) -> str:
        """Undecodable bytes are replaced."""
        return self.output.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command on a checkout. ``reach`` is the one port of this machine's loopback that it may reach (0: none),
    ``collect`` the folder that is taken out of it ("": none), ``dependencies`` the key of the project's set-up, which
    it sees in its place ("": none)."""

    label: str
    argv: tuple[str, ...]
    folder: Path
    allow_missing: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    reach: int = 0
    collect: str = ""
    dependencies: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where runs happen: ``folder`` holds their output, ``toolchain`` tells what a project's test command needs,
    ``environments`` are what projects have set up (None where none has)."""

    sandbox: Sandbox
    folder: Path
    toolchain: Callable[[Project], tuple[Path, ...]]
    environments: KeptEnvironments | None = None

    @asynccontextmanager
    async def ran(self, project: Project, job: Job) -> AsyncIterator[Ended]:
        """Run to the end, within the project's limits; what was collected is there as long as the context is open.

        Raises SetupFailed when the dependencies that the job names are not here (any more).
        """
        with self.outputs(job.label) as outputs:
            async with self._equipped(project, job, outputs) as run:
                result = await self.sandbox.run(run)
            output = await asyncio.to_thread(run.log.read_bytes)
            yield Ended(
                result=result, output=output, collected=run.collect.into if run.collect and result.collected else None
            )

    def _bare(self, project: Project, job: Job, outputs: Path) -> SandboxRun:
        limits = project.limits
        most = limits.artifact_bytes
        return SandboxRun(
            label=f"{self.folder}:{job.label}",  # builds of two installations share names
            argv=job.argv,
            folder=job.folder,
            log=outputs / "log",
            environment=job.environment,
            seconds=limits.test_seconds,
            memory_bytes=limits.test_memory_bytes,
            processes=limits.test_processes,
            log_bytes=limits.test_log_bytes,
            scratch_bytes=limits.test_scratch_bytes,
            allow_missing=waived(project, job.allow_missing),
            outlet=Outlet(port=job.reach, socket=outputs / "outlet") if job.reach else None,
            collect=Collect(folder=job.collect, into=outputs / "tar", most_bytes=most) if job.collect else None,
        )

    @asynccontextmanager
    async def _equipped(self, project: Project, job: Job, outputs: Path) -> AsyncIterator[SandboxRun]:
        """The run, with its programs and, as long as the context is open, its dependencies."""
        bare = self._bare(project, job, outputs)
        if not job.dependencies:
            # Other commands of the project are looked up as its tests are.
            yield replace(bare, toolchain=self.toolchain(replace(project, test=job.argv)))
            return
        if project.setup is None or self.environments is None:
            raise SetupFailed(f"the project {project.name} has no set-up any more, and the run needs its dependencies")
        async with self.environments.using(job.dependencies) as used:
            if used is None:
                raise SetupFailed(f"the environment {job.dependencies[:12]} is not here (any more): set it up again")
            yield with_dependencies(bare, project, used, self.toolchain)

    @contextmanager
    def outputs(self, label: str) -> Iterator[Path]:
        """A private folder. What a killed try of the same label left is removed first: nobody else would."""
        self.folder.mkdir(parents=True, exist_ok=True)
        prefix = f"log-{hashlib.sha256(label.encode()).hexdigest()[:12]}-"
        for leftover in self.folder.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder) as folder:
            yield Path(folder)


class OnBench:
    """Activities that run where model-written code runs, in a process without secrets."""

    def __init__(self, *, engine: Engine, workspaces: Workspaces, blobs: Blobs, bench: Bench) -> None:
        self._engine = engine
        self._workspaces = workspaces
        self._blobs = blobs
        self._bench = bench


def waived(project: Project, allow_missing: Iterable[str]) -> frozenset[str]:
    """The isolations that a run may do without: for a project with a target never the closed network."""
    return frozenset(allow_missing) - ({"network"} if project.delivery else set())
