"""``mendwork dev`` as a person runs it: a process of its own, real server, small workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.temporal.state import DevState, read_state
from tests.adapters.temporal_probes import eventually, gone
from tests.conftest import TemporalServer

_MAIN = """
import asyncio, json, os, sys
from pathlib import Path
from adapters.cli.dev import DevOptions, run_dev
from adapters.settings import Settings
from domain.errors import MendworkError

root, temporal = Path(sys.argv[1]), json.loads(sys.argv[2])
worker = (sys.executable, "-I", "-S", "-c", "import signal; signal.pause()")
options = DevOptions(worker=worker, classes=("saga", "model"), grace=5)
settings = Settings(root=root, temporal=temporal)
try:
    sys.exit(asyncio.run(run_dev(settings, environment=os.environ, options=options)))
except MendworkError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)
"""


class Dev:
    """One ``mendwork dev`` in ``folder``, and what it said on stderr."""

    def __init__(self, process: Process, folder: Path) -> None:
        self.process = process
        self.folder = folder / ".mendwork"

    def state(self) -> DevState | None:
        return read_state(self.folder)

    async def up(self) -> DevState:
        await eventually(lambda: len(self._workers()) == 2 or self.process.returncode is not None)
        state = self.state()
        assert state is not None, await self.said()
        return state

    async def said(self) -> str:
        """Everything on stderr; waits for the end of the process."""
        _, errors = await self.process.communicate()
        return errors.decode()

    def _workers(self) -> dict[str, int]:
        state = self.state()
        return state.workers if state else {}


@contextlib.asynccontextmanager
async def dev(folder: Path, environment: dict[str, str], **temporal: object) -> AsyncIterator[Dev]:
    arguments = json.dumps({"port": 0, "ui_port": 0, **temporal})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _MAIN, str(folder), arguments), env=environment, stderr=PIPE
    )
    try:
        yield Dev(process, folder)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The server may be where only the developer's HOME tells."""
    return {**environment, "HOME": os.environ["HOME"]}


async def test_it_serves_until_ctrl_c_and_ends_everything(tmp_path: Path, environment: dict[str, str]) -> None:
    async with dev(tmp_path, environment) as running:
        state = await running.up()
        assert state.pid == running.process.pid
        assert state.server_pid is not None
        running.process.send_signal(signal.SIGINT)
        said = await running.said()
        assert running.process.returncode == 0
    pids = [state.server_pid, *state.workers.values()]
    assert all(gone(pid) for pid in pids)
    assert running.state() is None
    for part in (state.address, state.ui, "temporal.log", f"saga (pid {state.workers['saga']})", "stopped"):
        assert part in said


async def test_a_killed_worker_and_a_killed_server_come_back(tmp_path: Path, environment: dict[str, str]) -> None:
    async with dev(tmp_path, environment) as running:
        before = await running.up()
        assert before.server_pid is not None
        os.kill(before.workers["model"], signal.SIGKILL)
        os.kill(before.server_pid, signal.SIGKILL)

        def restored() -> bool:
            now = running.state()
            pids = {now.server_pid, *now.workers.values()} if now else set()
            return len(pids - {None}) == 3 and not pids & {before.server_pid, before.workers["model"]}

        await eventually(restored)
        after = running.state()
        assert after is not None
        assert (after.address, after.workers["saga"]) == (before.address, before.workers["saga"])
        running.process.terminate()
        said = await running.said()
    assert "worker model ended (signal 9)" in said
    assert "the Temporal server ended (signal 9)" in said


async def test_nothing_outlives_a_kill_and_the_folder_is_free_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    async with dev(tmp_path, environment) as running:
        state = await running.up()
        running.process.kill()
        await running.process.wait()
        pids = [state.server_pid, *state.workers.values()]
        await eventually(lambda: all(pid is not None and gone(pid) for pid in pids))
    async with dev(tmp_path, environment) as again:
        assert (await again.up()).pid == again.process.pid


async def test_a_second_one_in_the_folder_is_one_sentence(tmp_path: Path, environment: dict[str, str]) -> None:
    async with dev(tmp_path, environment) as first:
        await first.up()
        async with dev(tmp_path, environment) as second:
            said = await second.said()
        assert said == f"AlreadyRunning: `mendwork dev` already runs in {first.folder} (pid {first.process.pid})\n"
        assert first.state() is not None


async def test_a_taken_port_is_one_sentence_and_leaves_nothing_running(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with dev(tmp_path, environment, port=taken.getsockname()[1]) as running:
            said = await running.said()
    assert said.startswith("InvalidInput: port")
    assert said.count("\n") == 1
    assert running.state() is None


async def test_a_server_that_is_already_there_is_used_instead(
    tmp_path: Path, environment: dict[str, str], temporal: TemporalServer
) -> None:
    async with dev(tmp_path, {**environment, "TEMPORAL_ADDRESS": temporal.address}) as running:
        state = await running.up()
        assert (state.address, state.server_pid) == (temporal.address, None)
        assert not (running.folder / "temporal.db").exists()
        running.process.terminate()
        assert temporal.address in await running.said()


async def test_a_wrong_namespace_of_that_server_is_one_sentence(
    tmp_path: Path, environment: dict[str, str], temporal: TemporalServer
) -> None:
    async with dev(tmp_path, environment, address=temporal.address, namespace="wrong") as running:
        said = await running.said()
    assert said.startswith("UnknownName: unknown Temporal namespace")
    assert re.search(r"'wrong'; known: .*\bdefault\b", said), said
