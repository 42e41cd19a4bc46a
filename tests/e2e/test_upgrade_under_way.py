"""The engine is upgraded while ten builds wait for approval and one is in its KPI watch: all end as if it had not been.

The newer version is a copy of this one with compatible changes behind ``workflow.patched``: a step more where every
build has been already, and one where each has yet to come. It starts after everything of the older one was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from adapters.temporal.connect import DATA_CONVERTER
from tests.e2e import service
from tests.e2e.projects import Scene, change, create, edit, plan, task, told
from tests.e2e.shops import address, asked, emptied
from tests.e2e.workshop import CHECKOUT, DEV, SPEC, Workshop, git, make_repository, wait_for
from tests.invariants import check_invariants

pytestmark = pytest.mark.timeout(600)

ASKS = 'approve = ["change"]\nreview = false\n'
TEN = Scene(
    name="ten",
    builds=10,
    consent=ASKS,
    answers=[plan(task("one", "one.py")), change("one", 1, create("one.py", "A = 1\n"))],
)
WATCH = "seconds = 16\nwindow = 2\nrate = 10\nmin_asked = 10"
SHOP = Scene(
    name="shop",
    consent=ASKS,
    files=service.FILES,
    answers=[
        plan(task("dearer", "prices.py")),
        change("dearer", 1, edit("prices.py", "return 10 * count", "return 11 * count")),
    ],
    more=service.section("task-shop", watch=WATCH),
)
BUILDS = [f"build-{TEN.project}-{number}" for number in range(1, 11)]
WATCHED = f"build-{SHOP.project}-1"
CODE = ("domain", "workflows", "activities", "adapters", "worker.py", "starter.py")
PAST, FUTURE = "has-been", "has-yet-to-come"
STEP = '{indent}if workflow.patched("{name}"):\n{indent}    await workflow.sleep(0.01)\n'


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Workshop]:
    """Two projects and their provider; no engine runs."""
    at = Workshop(tmp_path / "w")
    at.environment["SCRIPTED_API_KEY"] = f"canary-key-{uuid.uuid4().hex}"  # other engines on this machine have others
    at.answers.write_text(yaml.safe_dump([entry for scene in (TEN, SHOP) for entry in scene.script()]))
    for scene in (TEN, SHOP):
        make_repository(at.root / scene.project, scene.files)
    with at.provider() as url, emptied(at):
        at.configure(base_url=url, extra=TEN.section() + SHOP.section())
        yield at


def newer(folder: Path) -> Path:
    """A copy of the engine with a step more, behind a patch, in what has been and in what has yet to come."""
    for name in CODE:
        copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy2
        copy(CHECKOUT / name, folder / name)  # with its times: what is compiled already stays so
    insert(folder / "workflows/build_saga.py", '        while state.phase != "done":\n', PAST)
    insert(folder / "workflows/build_saga.py", "        await build.undo.close_all()\n", FUTURE)
    insert(folder / "workflows/delivery/watch.py", "            while not self._state.ended:\n", PAST)
    insert(folder / "workflows/delivery/watch.py", "        outcome = self._state.outcome\n        said", FUTURE)
    return folder


def insert(file: Path, before: str, name: str) -> None:
    """The step, in one place."""
    text, indent = file.read_text(), before[: len(before) - len(before.lstrip())]
    assert text.count(before) == 1, f"{file}: {before!r}"
    file.write_text(text.replace(before, STEP.format(indent=indent, name=name) + before))


@contextlib.contextmanager
def serving(at: Workshop, log: str) -> Iterator[None]:
    """Everything up; at the end everything is killed at once, the supervisor first."""
    with at.spawned(DEV, log=log) as supervisor:
        wait_for(at.is_ready, seconds=90, why=f"mendwork dev ({at.root / log})")
        pids = [*at.pids().values(), json.loads((at.state / "dev.json").read_text())["server_pid"]]
        try:
            yield
        finally:
            supervisor.send_signal(signal.SIGKILL)
            wait_for(lambda: not any(map(lives, pids)), why="the end of the killed engine")
    for file in (at.state / "logs").glob("worker-*.log"):
        file.rename(file.with_suffix(".ended"))  # who is ready is told by the logs


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def connected(at: Workshop) -> Client:
    return await Client.connect(
        json.loads((at.state / "dev.json").read_text())["address"], data_converter=DATA_CONVERTER
    )


async def begin(at: Workshop) -> dict[str, str]:
    """Start all eleven; the digest of what each asks for, once all ask."""
    client = await connected(at)
    for name, scene in [*((name, TEN) for name in BUILDS), (WATCHED, SHOP)]:
        request = {"spec": SPEC, "project": scene.project, "approved": ["release"]}
        await client.start_workflow("BuildSaga", request, id=name, task_queue="mendwork")
    async with asyncio.timeout(240):
        while (await client.count_workflows("NeedsApproval = true")).count < len(BUILDS) + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    asks = {name: await client.get_workflow_handle(name).query("pending") for name in (*BUILDS, WATCHED)}
    return {name: ask[0]["digest"] for name, ask in asks.items()}


async def approve(at: Workshop, digests: Mapping[str, str]) -> None:
    """What each asks for."""
    client = await connected(at)
    for name, digest in digests.items():
        await client.get_workflow_handle(name).signal("approve", {"digest": digest, "by": "ann"})


async def ended(at: Workshop) -> tuple[Mapping[str, str], Mapping[str, WorkflowHistory]]:
    """How the eleven ended; and the histories of everything that ever ran, by id and run."""
    client = await connected(at)
    async with asyncio.timeout(240):
        results = {name: await client.get_workflow_handle(name).result() for name in (*BUILDS, WATCHED)}
    runs = [each async for each in client.list_workflows()]
    histories = [await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history() for each in runs]
    named = {f"{run.id} {run.run_id}": history for run, history in zip(runs, histories, strict=True)}
    return {name: result["status"] for name, result in results.items()}, named


def failures(history: WorkflowHistory) -> list[str]:
    """Why workflow tasks failed; a worker that was killed lets them time out instead."""
    return [
        event.workflow_task_failed_event_attributes.failure.message
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]


def patches(histories: Mapping[str, WorkflowHistory], name: str) -> list[str]:
    """The patches in the histories of one saga."""
    markers = [
        str(event.marker_recorded_event_attributes.details)
        for run, history in histories.items()
        if run.split()[0] == name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED
    ]
    return [patch for patch in (PAST, FUTURE) for marker in markers if patch in marker]


def branches(at: Workshop, scene: Scene, builds: Sequence[str]) -> list[str]:
    """The builds whose result lies in the repository."""
    listed = git(at.root / scene.project, "for-each-ref", "--format=%(refname:short)", "refs/heads/mendwork")
    return sorted(set(listed.split()) & {f"mendwork/{build}" for build in builds})


def test_ten_builds_wait_and_one_is_watched_while_the_engine_is_upgraded(at: Workshop, tmp_path: Path) -> None:
    with serving(at, "old.log"):
        digests = asyncio.run(begin(at))
        asyncio.run(approve(at, {WATCHED: digests.pop(WATCHED)}))
        wait_for(lambda: told(at, WATCHED, "watch.window"), seconds=180, why="the first window of the watch")
    assert not told(at, WATCHED, "watch.ended")
    assert branches(at, TEN, BUILDS) == []

    at.environment["PYTHONPATH"] = str(newer(tmp_path))
    with serving(at, "new.log"):
        assert "cannot go on" not in (at.root / "new.log").read_text()
        asyncio.run(approve(at, digests))
        statuses, histories = asyncio.run(ended(at))
        assert {run: failures(history) for run, history in histories.items() if failures(history)} == {}
        assert set(statuses.values()) == {"succeeded"}
        assert branches(at, TEN, BUILDS) == sorted(f"mendwork/{build}" for build in BUILDS)
        assert asked(address(at, SHOP.project)).body == "price 22"
        for saga in (*BUILDS, WATCHED, f"{WATCHED}-release-watch"):
            assert patches(histories, saga) == [FUTURE], f"{saga}: the new path from where it was, the old one before"
        windows = told(at, WATCHED, "watch.window")
        assert [window["number"] for window in windows] == list(range(1, len(windows) + 1))
        check_invariants(at, WATCHED)
        check_invariants(at, BUILDS[0])
