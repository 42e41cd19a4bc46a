"""The sandbox port on bubblewrap: namespaces without privileges, memory file systems, control groups."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from adapters.sandbox import arguments, process
from adapters.sandbox.cgroup_folder import Limits
from adapters.sandbox.cgroups import BOTH, ControlGroups, Group, label_name
from adapters.sandbox.descriptors import Ends, connect
from adapters.sandbox.leftovers import end_leftovers
from adapters.sandbox.logfile import CutLog
from domain.errors import InvalidInput, IsolationMissing, ResourceShort, TooLarge
from domain.ports.sandbox import SandboxResult, SandboxRun

T = TypeVar("T")

_INSTALL = "apt-get install -y bubblewrap"
_ALLOW = (
    "sysctl -e -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 "
    "kernel.apparmor_restrict_unprivileged_userns=0"
)


_MOST_PROCESSES = 4096


class Bubblewrap:
    """The folder is copied into a memory file system of ``scratch_bytes``, so that a run can neither fill a disk nor
    change what it was given. Everything that it writes counts against ``memory_bytes``.

    ``path`` is where the host's programs are looked up, ``cgroups`` the control groups to use.
    """

    def __init__(self, *, cgroups: ControlGroups | None = None, path: str = arguments.HOST_PATH) -> None:
        self._cgroups = cgroups or ControlGroups()
        self._path = path
        self._flags: tuple[str, ...] | None = None
        self._limits_work = False

    def missing(self) -> dict[str, str]:
        """Found out by trying, once; what works is not tried again."""
        lacking: dict[str, str] = {}
        if self._flags is None:
            lacking |= self._try_engine()
        if not self._limits_work:
            limits = self._cgroups.missing()
            self._limits_work = not limits
            lacking |= limits
        return lacking

    async def run(self, run: SandboxRun) -> SandboxResult:
        """See the port. TooLarge when the folder does not fit into ``scratch_bytes`` or ``memory_bytes``."""
        _check(run)
        lacking = await asyncio.to_thread(self.missing)
        refused = sorted(lacking.keys() - run.allow_missing)
        if refused or "engine" in lacking:
            raise IsolationMissing("; ".join(lacking[name] for name in refused or ["engine"]))
        started = time.monotonic()
        try:
            group = await asyncio.to_thread(self._prepare, run, BOTH - lacking.keys())
            try:
                return await self._run_in(group, run, started)
            finally:
                await _surely(asyncio.to_thread(group.remove))
        except OSError as error:
            raise ResourceShort(f"the sandbox could not run: {error}") from error

    def _prepare(self, run: SandboxRun, controllers: frozenset[str]) -> Group:
        end_leftovers(label_name(run.label))
        self._cgroups.sweep(run.label)
        limits = Limits(memory=run.memory_bytes, processes=run.processes)
        return self._cgroups.create(run.label, limits=limits, controllers=controllers)

    async def _run_in(self, group: Group, run: SandboxRun, started: float) -> SandboxResult:
        log = CutLog(run.log, limit=run.log_bytes)
        try:
            with connect(arguments.ETC) as ends:
                argv = arguments.run_argv(run, self._wiring(run.label, ends, group))
                cell = process.Cell(ends, log, group)
                try:
                    await cell.start(argv, run.folder, path=self._path)
                    ended = await cell.watch(run.seconds)
                finally:
                    code = await _surely(cell.end())
                ready = ends.is_ready()
        finally:
            log.close()
        if not ready:
            raise _never_started(run, group, ended)
        ended = _limit_hit(group, code, ended)
        seconds = time.monotonic() - started
        flood = ended == process.TIMEOUT and log.cut
        return SandboxResult(exit_code=code, ended=process.LOG if flood else ended, seconds=seconds, log_cut=log.cut)

    def _wiring(self, label: str, ends: Ends, group: Group) -> arguments.Wiring:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        return arguments.Wiring(
            name=label_name(label),
            as_root=os.geteuid() == 0,
            flags=self._flags or (),
            etc={name: file.fileno() for name, file in ends.etc.items()},
            status=ends.status_in.fileno(),
            most_processes=_MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MOST_PROCESSES),
            entrances=group.entrances(),
        )

    def _try_engine(self) -> dict[str, str]:
        absent = [name for name in arguments.PROGRAMS if not shutil.which(name, path=self._path)]
        if absent:
            return {"engine": f"the sandbox needs {', '.join(absent)}; install it: {_INSTALL}"}
        try:
            flags = self._known_flags()
            with connect(arguments.ETC) as ends:
                self._flags = flags
                argv = arguments.trial_argv(self._wiring("trial", ends, Group(folders={})))
                trial = self._call(argv, ends.inherited())
            failure = trial.stderr.strip() if trial.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            failure = str(error)
        if not failure:
            return {}
        self._flags = None
        return {"engine": f"bubblewrap cannot isolate here ({failure.splitlines()[-1]}); allow it to: {_ALLOW}"}

    def _known_flags(self) -> tuple[str, ...]:
        known = self._call(["bwrap", "--help"]).stdout
        return ("--disable-userns",) if "--disable-userns" in known else ()

    def _call(self, argv: list[str], inherited: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            pass_fds=inherited,
            env={"PATH": self._path},
            cwd="/",
            timeout=20,
            check=False,
        )


def _check(run: SandboxRun) -> None:
    if not run.argv or any("\0" in word for word in run.argv):
        raise InvalidInput("the command to run is empty, or has a zero byte in it")
    if not run.folder.is_dir():
        raise InvalidInput(f"the folder to run in, {run.folder}, does not exist")


def _limit_hit(group: Group, code: int, ended: str) -> str:
    """A kill for memory is never an orderly end; a refused fork is one when the command exits 0 all the same."""
    if group.killed_for_memory():
        return process.MEMORY
    if group.refused_forks() and (code or ended != process.EXITED):
        return process.PROCESSES
    return ended


def _never_started(run: SandboxRun, group: Group, ended: str) -> Exception:
    with run.log.open("rb") as file:
        said = file.read(4096).decode(errors="replace")
    if group.killed_for_memory() or "No space left" in said or "Wrote only" in said:
        return TooLarge(
            f"the checkout does not fit into the sandbox's {run.scratch_bytes} bytes of scratch space "
            f"and {run.memory_bytes} bytes of memory"
        )
    reason = next((line for line in said.split("\n") if line.strip()), ended)
    return ResourceShort(f"the sandbox did not start the command: {reason}")


async def _surely(work: Coroutine[Any, Any, T]) -> T:
    """Await to the end, also when cancelled meanwhile; then the cancellation goes on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
