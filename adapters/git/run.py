"""One git process: by argv, in an environment of ours, with a time and an output limit, killed when cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapters.git.failures import pulled_away, refusal, system_refusal
from domain.errors import MendworkError, RepositoryRefused, ResourceShort, TooLarge

# Given on the command line, where they win over the configuration of the user's repository.
SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "core.quotePath=false",
    "core.logAllRefUpdates=false",
    "core.fsync=committed,reference",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "merge.conflictStyle=zdiff3",
    "merge.renames=true",
    "merge.directoryRenames=conflict",
    "merge.renormalize=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
)
# Not the caller's PATH: what runs must not depend on who started the worker.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STDERR_BYTES = 64_000
_RACES = 3
"""So often git is asked again when pruning pulled a folder away from under it."""
_CHUNK = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whom a git process runs as when root serves another user's repository."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How one git runs. ``stdin`` and ``stdout`` may be file descriptors; ``limit`` is for the bytes of stdout that we
    read; ``keep`` are descriptors that it inherits, so that a lock lives as long as it does."""

    stdin: bytes | int = b""
    stdout: int = PIPE
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 120.0
    limit: int = 256_000_000
    keep: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one git left. ``cut`` says that it was killed because stdout went over the limit."""

    code: int
    stdout: bytes
    stderr: bytes
    cut: bool


PLAIN = Call()


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The git of one repository, which is ``directory`` (bare, or the ``.git`` that worktrees share)."""

    directory: Path
    home: Path
    owner: Owner | None = None
    umask: int = -1

    async def run(self, *arguments: str, doing: str, call: Call = PLAIN) -> bytes:
        """The stdout of a git that must succeed. ``doing`` completes "could not" in the error's sentence.

        Raises RepositoryRefused, ResourceShort, Overtaken (a lock is held), TooLarge.
        """
        result = await self.outcome(*arguments, call=call)
        for _ in range(_RACES if isinstance(call.stdin, bytes) else 0):
            if not (result.code and pulled_away(result.stderr)):
                break
            result = await self.outcome(*arguments, call=call)
        if result.cut:
            raise TooLarge(f"could not {doing}: more than {call.limit} bytes")
        if result.code:
            raise refusal(result.stderr, doing=doing)
        return result.stdout

    async def outcome(self, *arguments: str, call: Call = PLAIN) -> Result:
        """Whatever a git answers, failed or not. Raises ResourceShort when it takes longer than ``call.seconds``."""
        starting = asyncio.ensure_future(self._start(arguments, call))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio itself would kill git alone, and its children would go on.
            with contextlib.suppress(MendworkError):
                await _end(await starting)
            raise
        try:
            async with asyncio.timeout(call.seconds):
                return await _collect(process, call)
        except TimeoutError:
            await _end(process)
            raise ResourceShort(f"git {arguments[0]} took more than {call.seconds:g} s and was stopped") from None
        except BaseException:
            await _end(process)
            raise

    async def _start(self, arguments: tuple[str, ...], call: Call) -> Process:
        owner = self.owner
        try:
            with _source(call.stdin) as stdin:
                return await asyncio.create_subprocess_exec(
                    "git", *with_settings(f"--git-dir={self.directory}", *arguments),
                    cwd=self.directory, env=self._environment(call.variables), umask=self.umask,
                    stdin=stdin, stdout=call.stdout, stderr=PIPE, start_new_session=True, pass_fds=call.keep,
                    user=owner.uid if owner else None, group=owner.gid if owner else None,
                    extra_groups=[] if owner else None,
                )  # fmt: skip
        except FileNotFoundError as error:
            missing = "git is not installed" if self.directory.is_dir() else f"there is no repository {self.directory}"
            raise RepositoryRefused(missing) from error
        except OSError as error:
            raise system_refusal(error, doing=f"start git in {self.directory}") from error

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Everything that git sees of its surroundings; nothing is inherited."""
        return {
            "PATH": _PATH,
            "LC_ALL": "C",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "file",
            "GIT_ASKPASS": "false",
            "GIT_SSH_COMMAND": "false",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            **variables,
        }


def with_settings(*arguments: str) -> list[str]:
    """``arguments`` of git after all our settings."""
    return [*(word for setting in SETTINGS for word in ("-c", setting)), *arguments]


async def _collect(process: Process, call: Call) -> Result:
    out, err = await asyncio.gather(
        _read(process.stdout, call.limit, lambda: _kill(process)),
        _read(process.stderr, _STDERR_BYTES),
    )
    code = await process.wait()
    return Result(code=code, stdout=out[: call.limit], stderr=err[:_STDERR_BYTES], cut=len(out) > call.limit)


async def _read(stream: asyncio.StreamReader | None, limit: int, on_full: Callable[[], None] | None = None) -> bytes:
    """Read to the end and keep the first bytes, at least one more than ``limit`` if there are more."""
    kept: list[bytes] = []
    size = 0
    while stream and (chunk := await stream.read(_CHUNK)):
        if size <= limit:
            kept.append(chunk)
            size += len(chunk)
            if size > limit and on_full:
                on_full()
    return b"".join(kept)


@contextlib.contextmanager
def _source(stdin: bytes | int) -> Iterator[int]:
    """A descriptor to read ``stdin`` from. Not a pipe: a git that stops reading early would break it."""
    if isinstance(stdin, int):
        yield stdin
        return
    with open(os.memfd_create("stdin"), "w+b", buffering=0) as memory:
        memory.write(stdin)
        memory.seek(0)
        yield memory.fileno()


def _kill(process: Process) -> None:
    """End the whole group: git starts children of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _end(process: Process) -> None:
    """Leave no process and no open pipe behind; a child of git may outlive git itself."""
    _kill(process)
    await _read(process.stdout, 0)
    await _read(process.stderr, 0)
    await process.wait()
