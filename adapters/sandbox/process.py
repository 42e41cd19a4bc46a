"""One bubblewrap with everything in it: started, watched, and dead when it is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path

from adapters.sandbox.cgroups import Group
from adapters.sandbox.collecting import Answers
from adapters.sandbox.descriptors import Ends
from adapters.sandbox.logfile import CutLog

EXITED, TIMEOUT, MEMORY, PROCESSES, LOG = "exited", "timeout", "memory", "processes", "log"
OVERFULL = "overfull"  # never seen outside: it becomes an error
_GRACE = 10.0
_TICK = 0.2
_BOMB = 100  # refused forks after which a run is not merely at its limit


class Cell:
    """A started run. ``end`` must be called, whatever happens: it leaves no process behind."""

    def __init__(self, ends: Ends, log: CutLog, group: Group, answers: Answers) -> None:
        self._ends = ends
        self._answers = answers
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._log = _LogReader(log, self._loop.create_future())
        self._process: asyncio.subprocess.Process | None = None
        self._feeder: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[int]] = []
        self._init: int | None = None
        self._transports: list[asyncio.BaseTransport] = []

    async def start(self, argv: Sequence[str], folder: Path, *, path: str) -> None:
        """Start ``argv`` and send it a copy of ``folder``, or ``folder`` itself when that is a tar.

        Raises OSError when no process can be started.
        """
        environment = {"PATH": path}
        await self._listen(lambda: self._log, self._ends.log_out)
        self._answers.listen(self._loop)
        self._process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=self._ends.stdin.fileno(),
            stdout=self._ends.log_in,
            stderr=self._ends.log_in,
            pass_fds=self._ends.inherited(),
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        self._ends.close_theirs()
        self._init = await self._first_process(self._process.pid)
        self._feeder = await asyncio.create_subprocess_exec(
            *_copy_of(folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._ends.feed.fileno(),
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
        )
        self._tasks = [asyncio.create_task(self._process.wait()), asyncio.create_task(self._feed(self._feeder))]

    async def watch(self, seconds: float) -> str:
        """Wait until the command exits or a limit is hit, and say which."""
        give_up = self._loop.time() + seconds
        while True:
            left = max(0.0, min(_TICK, give_up - self._loop.time()))
            done, _ = await asyncio.wait(self._tasks[:1], timeout=left)
            if done:
                return EXITED
            if self._group.killed_for_memory():
                return MEMORY
            if self._group.refused_forks() > _BOMB:
                return PROCESSES
            if self._answers.overfull:
                return OVERFULL
            if self._loop.time() >= give_up:
                return TIMEOUT

    async def end(self) -> int:
        """Kill whatever is left, wait for it and for the last of the log; the exit code as a shell gives it.

        Raises OSError when the log could not be written or something does not die.
        """
        try:
            if self._process is None:
                return 0
            await self._kill(self._process)
            await asyncio.gather(*self._tasks)
            await asyncio.wait_for(self._log.done, _GRACE)
            code = await self._process.wait()
            return code if code >= 0 else 128 - code
        finally:
            for transport in self._transports:
                transport.close()

    async def _kill(self, process: asyncio.subprocess.Process) -> None:
        try:
            if self._init is not None:
                await _end(self._init)
                with contextlib.suppress(TimeoutError):  # it should tell how its child died, and is killed if not
                    await asyncio.wait_for(process.wait(), 1.0)
        finally:
            for last in (process, self._feeder):
                if last and last.returncode is None:
                    last.kill()
            self._group.kill()

    async def _listen(self, protocol: Callable[[], asyncio.BaseProtocol], pipe: FileIO) -> None:
        transport, _ = await self._loop.connect_read_pipe(protocol, pipe)
        self._transports.append(transport)

    async def _first_process(self, parent: int) -> int | None:
        """A handle on process 1 of the run's own process tree: when that one is gone, all are."""
        reader = asyncio.StreamReader()
        # Open to the end: bubblewrap also reports the exit code on it, and would die of a closed pipe.
        await self._listen(lambda: asyncio.StreamReaderProtocol(reader), self._ends.status_out)
        line = await asyncio.wait_for(reader.readline(), _GRACE)
        return _handle(int(json.loads(line)["child-pid"]), parent) if line.strip() else None

    async def _feed(self, feeder: asyncio.subprocess.Process) -> int:
        code = await feeder.wait()
        self._ends.end_of_feed()
        return code


class _LogReader(asyncio.Protocol):
    def __init__(self, log: CutLog, done: asyncio.Future[None]) -> None:
        self._log = log
        self._failure: OSError | None = None
        self.done = done

    def data_received(self, data: bytes) -> None:
        try:
            if not self._failure:
                self._log.write(data)
        except OSError as error:
            self._failure = error

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done.done():
            return
        if self._failure:
            self.done.set_exception(self._failure)
        else:
            self.done.set_result(None)


def _copy_of(folder: Path) -> tuple[str, ...]:
    return ("tar", "-C", str(folder), "-cf", "-", ".") if folder.is_dir() else ("cat", str(folder))


async def _end(handle: int) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    with contextlib.suppress(ProcessLookupError):  # it ended by itself
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    loop.add_reader(handle, over.set)
    try:
        await asyncio.wait_for(over.wait(), _GRACE)
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _handle(pid: int, parent: int) -> int | None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    with contextlib.suppress(OSError):  # it ended, and its number may be another's by now
        if f"\nPPid:\t{parent}\n" in Path("/proc", str(pid), "status").read_text():
            return handle
    os.close(handle)
    return None
