"""The sandbox port without isolation: a copy of the folder, a process group, limits for each process. Only when chosen.

For machines that have no bubblewrap, macOS among them: it asks for a POSIX shell, ``nice``, and ``ps`` where there is
no /proc. Whoever chooses it lets what a model wrote run as himself.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import os
import selectors
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from adapters.sandbox.logfile import CutLog
from adapters.sandbox.mounted.checking import check
from adapters.sandbox.mounted.copies import copy_in, link_in, take_out
from adapters.sandbox.mounted.processes import end_all
from adapters.sandbox.toolchain import SYSTEM_PATH
from domain.errors import InvalidInput, IsolationMissing, ResourceShort
from domain.ports.sandbox import SandboxResult, SandboxRun

ACCEPTED = frozenset({"files", "memory", "pids"})
"""What ``engine = "mount"`` in a configuration accepts by itself: the dangers for the machine whose owner wrote that.
"network" is a danger for others, and every build has to accept it for itself."""
WORK = "/work"
_EXITED, _TIMEOUT, _LOG = "exited", "timeout", "log"
_TICK = 0.05
_CHUNK = 1 << 16
# Limits of a process, where this system has them; the shell becomes the command.
_ENTER = 'ulimit -c 0; umask 022; ulimit -d "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; shift 2; exec nice -n 10 "$@"'


class Mount:
    """``accepted`` are isolations that nobody has to do without explicitly any more, since the configuration has."""

    def __init__(self, *, accepted: frozenset[str] = ACCEPTED) -> None:
        self._accepted = accepted

    def missing(self) -> Mapping[str, str]:
        """All four: nothing here isolates. The sentences are for people who choose."""
        return {
            "network": "in a mount, what a model wrote can reach every service that this machine can; bubblewrap "
            "closes the network, or accept it for one build with `--allow-missing network`",
            "files": f"in a mount, what a model wrote can read and change every file that {_user()} can, keys and "
            "other projects too; only its working folder is a copy",
            "memory": "in a mount, each process of a run is limited in memory and the run as a whole is not",
            "pids": "in a mount, the number of a run's processes is not limited",
        }

    async def run(self, run: SandboxRun) -> SandboxResult:
        """See the port. ``reached`` and ``refused`` stay 0: nobody stands between a run and its outlet.

        ``egress`` is no more than the whole network here, and a run that wants it needs that accepted like any other.
        """
        check(run)
        lacking = self.missing()
        refused = sorted(lacking.keys() - run.allow_missing - self._accepted)
        if refused:
            raise IsolationMissing("; ".join(lacking[name] for name in refused))
        stop = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(_to_its_end, run, stop))
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait([work])  # which leaves it alone when we are cancelled, and raises nothing of it
            except asyncio.CancelledError as error:
                cancelled = error
                stop.set()
        if cancelled:
            work.exception()
            raise cancelled
        return work.result()


def _to_its_end(run: SandboxRun, stop: threading.Event) -> SandboxResult:
    """In a thread: whatever happens, no process and no copy is left. Raises ResourceShort, TooLarge."""
    mark = f"mendwork-mount-{hashlib.sha256(run.label.encode()).hexdigest()[:16]}-"
    started = time.monotonic()
    try:
        end_all(mark)
        _sweep(run.log.parent, mark)
        with tempfile.TemporaryDirectory(prefix=mark, dir=run.log.parent, ignore_cleanup_errors=True) as name:
            # Removed from under it by a newer run of the label, it is gone all the same.
            return _in_folder(run, Path(name).resolve(), stop, started)
    except OSError as error:
        raise ResourceShort(f"the run could not be made: {error}") from error


def _in_folder(run: SandboxRun, place: Path, stop: threading.Event, started: float) -> SandboxResult:
    work = run.kept.resolve() if run.kept else place / "work"
    for folder in (work, place / "tmp", place / "tmp" / "home"):
        folder.mkdir(exist_ok=True)
    copy_in(run.folder, work, most_bytes=run.scratch_bytes)
    link_in(dict(run.mounts), work)
    log = CutLog(run.log, limit=run.log_bytes)
    try:
        ended, code = _watched(run, work, _environment(run, place, work), log, stop)
    finally:
        log.close()
    flood = ended == _TIMEOUT and log.cut
    good = ended == _EXITED and code == 0 and not stop.is_set()
    return SandboxResult(
        exit_code=code,
        ended=_LOG if flood else ended,
        seconds=time.monotonic() - started,
        log_cut=log.cut,
        collected=bool(run.collect and good and take_out(work, run.collect)),
    )


def _watched(
    run: SandboxRun, work: Path, environment: Mapping[str, str], log: CutLog, stop: threading.Event
) -> tuple[str, int]:
    """Start it, keep what it prints until it exits or has to, and end it whole. Raises OSError."""
    kilobytes, blocks = run.memory_bytes // 1024, run.scratch_bytes // 512
    argv = ["/bin/sh", "-c", _ENTER, "run", str(kilobytes), str(blocks), *run.argv]
    process = subprocess.Popen(
        argv,
        cwd=work,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with process, process.stdout as output, selectors.DefaultSelector() as selector:  # type: ignore[union-attr]
        os.set_blocking(output.fileno(), False)
        selector.register(output, selectors.EVENT_READ)
        ended, give_up = _EXITED, time.monotonic() + run.seconds
        try:
            while process.poll() is None and not stop.is_set():
                if time.monotonic() >= give_up:
                    ended = _TIMEOUT
                    break
                if selector.select(_TICK):
                    _drain(output.fileno(), log, once=True)
        finally:
            end_all(environment["TMPDIR"], group=process.pid)
            code = process.wait()
        _drain(output.fileno(), log)
    return ended, code if code >= 0 else 128 - code


def _drain(descriptor: int, log: CutLog, *, once: bool = False) -> None:
    """What is there to be read. Nobody writes any more when it is not ``once``; what hid from us must not hold us."""
    while True:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            if once:
                time.sleep(_TICK)  # closed, and the command goes on
            return
        log.write(data)
        if once:
            return


def _environment(run: SandboxRun, place: Path, work: Path) -> dict[str, str]:
    """What is given, with the names that every sandbox has; ``/work`` is where the copy really is."""
    programs = [str(p / "bin" if (p / "bin").is_dir() else p if p.is_dir() else p.parent) for p in run.toolchain]
    first = [str(work / folder) for folder in run.programs]
    given = {
        name: str(work) + value.removeprefix(WORK) if value == WORK or value.startswith(f"{WORK}/") else value
        for name, value in run.environment.items()
    }
    values = {
        "PATH": os.pathsep.join(dict.fromkeys([*first, *programs, *SYSTEM_PATH])),
        "LANG": "C.UTF-8",
        **given,
        "HOME": str(place / "tmp" / "home"),
        "TMPDIR": str(place / "tmp"),
    }
    if any(not name or "=" in name or "\0" in name + value for name, value in values.items()):
        raise InvalidInput("the sandbox's environment has a name or a value that no environment can hold")
    return values


def _sweep(folder: Path, mark: str) -> None:
    for leftover in folder.glob(f"{mark}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
