"""The sandbox port on bubblewrap: namespaces without privileges, memory file systems, control groups."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from adapters.sandbox import arguments, process
from adapters.sandbox.cgroup_folder import Limits
from adapters.sandbox.cgroups import BOTH, ControlGroups, Group, label_name
from adapters.sandbox.collecting import Answers
from adapters.sandbox.descriptors import Ends, connect
from adapters.sandbox.leftovers import end_leftovers
from adapters.sandbox.logfile import CutLog
from adapters.sandbox.mounted.checking import check
from adapters.sandbox.toolchain import is_system
from adapters.sandbox.trial import Flags, Trial, try_engine
from adapters.sandbox.ways.abroad import Abroad
from adapters.sandbox.ways.inside import etc_of
from adapters.sandbox.ways.proxy import proxied
from adapters.sandbox.ways.relay import relayed
from domain.errors import IsolationMissing, ResourceShort, TooLarge
from domain.ports.sandbox import SandboxResult, SandboxRun

T = TypeVar("T")

_MOST_PROCESSES = 4096
_NO_HAPROXY = (
    "a run's one way out is held open by haproxy, which is not in this machine's /usr; "
    "install it: apt-get install -y haproxy"
)


class Bubblewrap:
    """The folder is copied into a memory file system of ``scratch_bytes``, so that a run can neither fill a disk nor
    change what it was given. Everything that it writes counts against ``memory_bytes``.

    ``path`` is where the host's programs are looked up, ``cgroups`` the control groups to use, ``abroad`` how runs
    that may reach hosts do so.
    """

    def __init__(
        self,
        *,
        cgroups: ControlGroups | None = None,
        path: str = arguments.HOST_PATH,
        abroad: Abroad = Abroad(),  # noqa: B008 - a frozen value
    ) -> None:
        self._abroad = abroad
        self._cgroups = cgroups or ControlGroups()
        self._path = path
        self._trial = Trial(flags=None)
        self._limits_work = False

    def missing(self) -> dict[str, str]:
        """Found out by trying, once; what works is not tried again."""
        if self._trial.flags is None:
            none = Group(folders={})
            self._trial = try_engine(self._path, lambda ends, flags: self._wiring("trial", ends, none, flags))
        lacking = dict(self._trial.missing)
        if not self._limits_work:
            limits = self._cgroups.missing()
            self._limits_work = not limits
            lacking |= limits
        return lacking

    async def run(self, run: SandboxRun) -> SandboxResult:
        """See the port. TooLarge when the folder does not fit into ``scratch_bytes`` or ``memory_bytes``."""
        check(run)
        lacking = await asyncio.to_thread(self.missing)
        refused = sorted(lacking.keys() - run.allow_missing)
        if refused or "engine" in lacking:
            raise IsolationMissing("; ".join(lacking[name] for name in refused or ["engine"]))
        if (run.outlet or run.egress) and not self._haproxy():
            raise IsolationMissing(_NO_HAPROXY)
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
        if run.kept and os.geteuid() == 0:
            os.chown(run.kept, int(arguments.NOBODY), int(arguments.NOBODY), follow_symlinks=False)
        limits = Limits(memory=run.memory_bytes, processes=run.processes)
        return self._cgroups.create(run.label, limits=limits, controllers=controllers)

    async def _run_in(self, group: Group, run: SandboxRun, started: float) -> SandboxResult:
        log = CutLog(run.log, limit=run.log_bytes)
        try:
            etc = etc_of(run, await asyncio.to_thread(self._abroad.trusted) if run.egress else "")
            async with relayed(run.outlet) as relay, proxied(run.egress, self._abroad.upstream) as proxy:
                with connect(etc) as ends:
                    ended, code, collected = await self._in_cell(ends, log, group, run)
        finally:
            log.close()
        seconds = time.monotonic() - started
        flood = ended == process.TIMEOUT and log.cut
        return SandboxResult(
            exit_code=code,
            ended=process.LOG if flood else ended,
            seconds=seconds,
            log_cut=log.cut,
            reached=relay.reached,
            refused=relay.refused,
            collected=collected,
            refused_hosts=tuple(sorted(proxy.refused)),
        )

    async def _in_cell(self, ends: Ends, log: CutLog, group: Group, run: SandboxRun) -> tuple[str, int, bool]:
        """How the run ended, its exit code, and whether something was collected."""
        argv = arguments.run_argv(run, self._wiring(run.label, ends, group, self._trial.flags or ()))
        answers = Answers(ends.feed, run.collect)
        cell = process.Cell(ends, log, group, answers)
        ended, good = "", False
        try:
            await cell.start(argv, run.folder, path=self._path)
            ended = await cell.watch(run.seconds)
        finally:
            try:
                code = await _surely(cell.end())
                ended = _limit_hit(group, code, ended)
                good = ended == process.EXITED and code == 0
            finally:
                collected = answers.finish(keep=good)
        if run.collect and answers.overfull:
            most = run.collect.most_bytes
            raise TooLarge(f"what the command left is larger than the {most} bytes that may be taken out")
        if not answers.ready:
            raise _never_started(run, group, ended)
        return ended, code, collected

    def _wiring(self, label: str, ends: Ends, group: Group, flags: Flags) -> arguments.Wiring:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        return arguments.Wiring(
            name=label_name(label),
            as_root=os.geteuid() == 0,
            flags=flags,
            etc={name: file.fileno() for name, file in ends.etc.items()},
            status=ends.status_in.fileno(),
            most_processes=_MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MOST_PROCESSES),
            entrances=group.entrances(),
            haproxy=self._haproxy(),
        )

    def _haproxy(self) -> str:
        """Where it is on this machine and in every run; "" when nowhere that runs can see."""
        found = shutil.which("haproxy", path=self._path)
        return found if found and is_system(Path(found).resolve()) else ""


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
