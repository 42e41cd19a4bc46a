"""Every exit code of the table by the command itself: a store with builds of every end, and a real server."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from adapters.cli.exits import MEANINGS
from adapters.store import open_store
from domain.ports.store import Event
from tests.adapters.test_cli_exits import GRPC_UNAUTHENTICATED, refusing
from tests.conftest import TemporalServer
from tests.domain.trace_stories import ASK, PLANNED, Saga, begun
from tests.forks import Ran, run_command

MENDWORK = str(Path(sys.executable).parent / "mendwork")
REFUSED = {"kind": "CredentialsRefused", "sentence": "no", "source": "m", "number": 1}
ENDS = {
    "succeeded": ("succeeded", ""),
    "aborted": ("aborted", "Aborted"),
    "failed": ("failed", "AttemptsExhausted"),
    "partial": ("partial", ""),
    "escalated": ("escalated", "Escalated"),
    "keyless": ("failed", "ModelsExhausted"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where the commands are typed. Builds have names of their own on the server, which others use too."""

    folder: Path
    environment: dict[str, str]
    mark: str

    def build(self, name: str) -> str:
        return f"build-{name}{self.mark}-1"

    async def ran(self, *words: str, **environment: str) -> Ran:
        """What one command did."""
        run = partial(run_command, words, folder=self.folder, environment=self.environment | environment, seconds=180)
        return await asyncio.to_thread(run)

    async def interrupted(self, *words: str) -> Ran:
        """The same for one that gets a Ctrl-C once it has said something."""
        process = await asyncio.create_subprocess_exec(
            *(MENDWORK, *words),
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        async with asyncio.timeout(180):
            first = await process.stderr.readline()
            process.send_signal(signal.SIGINT)
            out, rest = await process.communicate()
        assert process.returncode is not None
        return Ran(code=process.returncode, out=out.decode(), err=(first + rest).decode())


def story(desk: Desk, name: str, *more: tuple[str, dict[str, Any]]) -> Sequence[Event]:
    """A build until its tasks, and what else is noted."""
    root = Saga(desk.build(name))
    events = [*begun(root), *(root.note(4000 + n, kind, **data) for n, (kind, data) in enumerate(more))]
    return [replace(each, build=desk.build(name)) for each in events]


@pytest.fixture
async def desk(
    tmp_path: Path, temporal: TemporalServer, client: Client, environment: dict[str, str]
) -> AsyncIterator[Desk]:
    """A store with a build of every end, and some that run: with a workflow, waiting for a person, and without one."""
    at = Desk(folder=tmp_path, environment=environment | temporal.environment, mark=uuid.uuid4().hex[:8])
    (tmp_path / "mendwork.toml").write_text(f'[temporal]\nnamespace = "{temporal.namespace}"\n')
    refused = ("call.failed", {**PLANNED, "faults": [REFUSED]})
    async with await open_store(f"sqlite:///{tmp_path / '.mendwork' / 'mendwork.db'}") as store:
        for name, (status, fault) in ENDS.items():
            end = ("build.ended", {"status": status, "sentence": "", "fault": fault})
            before = [("build.phase", {"phase": "plan"}), refused] if name == "keyless" else []
            await store.events.append(story(at, name, *before, end))
        await store.events.append(story(at, "runs"))
        await store.events.append(story(at, "gone"))
        await store.events.append(story(at, "asks", ("build.phase", {"phase": "approve"}), ("ask.opened", ASK)))
    for name in ("runs", "asks"):
        await client.start_workflow("Nobody", id=at.build(name), task_queue=f"nobody-{at.mark}")
    yield at
    for name in ("runs", "asks"):
        await client.get_workflow_handle(at.build(name)).terminate()


@pytest.mark.timeout(240)
async def test_every_code_of_the_table_is_that_of_a_real_command(desk: Desk) -> None:
    watches = {
        0: desk.ran("watch", desk.build("succeeded")),
        1: desk.ran("watch", desk.build("gone")),
        2: desk.ran("status", "build-nobody-1"),
        3: desk.ran("watch", desk.build("aborted")),
        4: desk.ran("watch", desk.build("keyless")),
        5: desk.ran("watch", desk.build("failed")),
        6: desk.ran("watch", desk.build("partial")),
        7: desk.ran("watch", desk.build("asks"), "--no-wait"),
        8: desk.ran("watch", desk.build("escalated")),
        124: desk.ran("watch", desk.build("runs"), "--timeout", "1"),
        130: desk.interrupted("watch", desk.build("runs")),
    }
    assert watches.keys() == MEANINGS.keys()
    found = dict(zip(watches, await asyncio.gather(*watches.values()), strict=True))
    assert {code: ran.code for code, ran in found.items()} == {code: code for code in watches}, found
    assert "Traceback" not in "".join(ran.err for ran in found.values())


async def test_whoever_refuses_our_credentials_the_code_is_the_same(desk: Desk) -> None:
    async with refusing(GRPC_UNAUTHENTICATED) as address:
        ran = await desk.ran("watch", desk.build("runs"), TEMPORAL_ADDRESS=address)
    assert ran.code == 4, ran.err


async def test_a_prompt_without_a_terminal_is_usage_and_names_the_flag(desk: Desk) -> None:
    ran = await desk.ran("approve", desk.build("asks"))
    assert ran.code == 2
    assert "DIGEST: without a terminal name what you approve" in ran.err
