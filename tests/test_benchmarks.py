"""The benchmarks still run; what they measure is for `make bench`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from temporalio.client import Client, WorkflowFailureError
from temporalio.testing import ActivityEnvironment

from adapters.store.memory import MemoryStore
from benchmarks import environments, gateway, start, tasks
from benchmarks.bodies import calls_of
from benchmarks.engine.bare import Bare, Tree
from benchmarks.engine.tree import BOOKKEEPING, draw, steps, without
from benchmarks.engine.world import QUEUES, Faked, Instant, serving_bare, serving_ours
from benchmarks.ground.processes import cpu_below
from benchmarks.ground.waiting import Unfinished, all_ended, until
from benchmarks.langgraph.asking import asking, model
from benchmarks.langgraph.ours import Slow
from benchmarks.langgraph.theirs import CALLS, STEPS, go_on, graph_of
from benchmarks.scale.site import _steady
from tests.workflows.running import SPEC


def test_a_task_is_played_by_ours_and_by_the_shell_in_the_same_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(tasks.main(tasks.SIZES[:1], 2, folder=tmp_path)) > 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["files", "who", *tasks.STEPS, "whole", "ratio"]
    assert [line.split()[:2] for line in shown[1:3]] == [["50", "shell"], ["50", "ours"]]
    assert len(shown[2].split()) == len(shown[0].split())
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_built_once_and_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(environments.main(1, plain=True))
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in shown] == ["built", "found again", "a run without it", "a run on top of it"]
    assert "it was there" not in shown[0]


@asynccontextmanager
async def built(client: Client, world: Faked) -> AsyncIterator[str]:
    """A build that has ended; its name."""
    queue, name = uuid.uuid4().hex, f"build-notes-{uuid.uuid4().hex}"
    async with serving_ours(client, queue, world):
        async with asyncio.timeout(90):
            assert (await client.execute_workflow("BuildSaga", SPEC, id=name, task_queue=queue))["status"]
        yield name


def shape(tree: Tree) -> list[Any]:
    """What begins together, without the names of activities and workflows."""
    return [
        (
            sorted((step.queue, max(step.given, 6), max(step.returned, 2)) for step in each.steps),
            {name: list(told) for name, told in each.attributes.items()},
            [shape(child) for child in each.children],
        )
        for each in tree.rounds
    ]


async def test_a_bare_tree_does_just_what_the_build_did_that_it_was_drawn_from(client: Client) -> None:
    async with built(client, Faked(MemoryStore(), Instant())) as name:
        tree = await draw(client, name)
    plain = await Client.connect(client.service_client.config.target_host)
    queue, bare = uuid.uuid4().hex, f"bare-{uuid.uuid4().hex}"
    async with serving_bare(plain, queue), asyncio.timeout(90):
        await plain.execute_workflow(Bare.run, tree, id=bare, task_queue=queue)
    assert shape(await draw(plain, bare)) == shape(tree)
    assert sum(len(each.children) for each in tree.rounds) == 2
    assert 10 < steps(without(tree, BOOKKEEPING)) < steps(tree) / 2


async def test_what_a_build_called_can_be_called_again_in_its_order(client: Client) -> None:
    world = Faked(MemoryStore(), Instant())
    async with built(client, world) as name:
        bodies = {_name(body): body for body in world.activities()}
        calls = await calls_of(client, name, bodies)
    order = [call.name for call in calls if call.name not in BOOKKEEPING]
    assert order == [step.rpartition("/")[2] for step in STEPS]  # LangGraph is given the same work
    change = next(call for call in calls if call.name == "call_model" and call.given.key.step == "change")
    again = await ActivityEnvironment().run(bodies["call_model"], change.given)
    assert (again.model, again.problems) == ("coder", ())


def _name(body: Callable[..., Any]) -> str:
    return str(getattr(body, "__temporal_activity_definition").name)


async def test_a_call_with_ledger_and_blobs_is_compared_with_a_plain_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Instant()
    async with gateway.activity(Instant(), tmp_path) as whole:
        over = await gateway.compare({"plain": lambda: plain.quote(""), "with ledger and blobs": whole}, 1, 2)
    assert over["plain"] == 0
    assert over["with ledger and blobs"] > 0
    assert capsys.readouterr().out.splitlines()[2].split()[-1] == f"{gateway.WHOLE}"


def test_a_start_is_timed_in_a_process_of_its_own() -> None:
    took = start.help_once()
    assert took.wall > 0
    assert took.cpu > 0


async def test_workers_are_ready_when_the_last_queue_is_polled(client: Client) -> None:
    queue = uuid.uuid4().hex
    waiting = asyncio.create_task(start.served(client, [queue + suffix for suffix in QUEUES]))
    async with serving_bare(client, queue), asyncio.timeout(60):
        await waiting


async def test_what_does_not_end_is_named_with_what_it_waits_for(client: Client) -> None:
    name = f"build-notes-{uuid.uuid4().hex}"
    handle = await client.start_workflow("BuildSaga", SPEC, id=name, task_queue=uuid.uuid4().hex)
    with pytest.raises(Unfinished, match=rf"1 of 1 have not ended: {name} \(a workflow task, try 1\)"):
        await all_ended([handle], seconds=0.5)
    with pytest.raises(Unfinished, match="no sheep"):
        await until(lambda: False, seconds=0.0, what=lambda: "no sheep")
    await handle.terminate()


async def test_a_wait_ends_with_the_first_failure_and_stops_what_goes_on_beside(client: Client) -> None:
    stopped = asyncio.Event()

    async def beside() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    handle = await client.start_workflow("BuildSaga", SPEC, id=uuid.uuid4().hex, task_queue=uuid.uuid4().hex)
    await handle.terminate()
    with pytest.raises(WorkflowFailureError):
        await all_ended([handle], seconds=60, also=[beside()])
    assert stopped.is_set()


def test_calls_are_counted_while_there_are_more_than_turns() -> None:
    ramp = [0.0, 10.0, 20.0, 30.0]
    steady = (30.0 + 0.1 * number for number in range(1, 9))
    assert _steady([*ramp, *steady, 40.0, 50.0, 60.0, 70.0]) == pytest.approx(10.0)
    assert _steady([1.0]) == 0.0


def test_the_cpu_of_a_child_that_has_ended_counts() -> None:
    before = cpu_below(os.getpid())
    code = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    assert cpu_below(os.getpid()) - before >= 0.15


async def test_a_thread_of_langgraph_that_died_goes_on_at_its_last_checkpoint() -> None:
    async with model(0.0) as asked, asking(asked.url) as ask:
        deaths = iter(["once"])

        async def dying(key: str, question: str) -> str:
            answer = await ask(key, question)
            if key.endswith("/store/call_model") and next(deaths, ""):
                raise ConnectionError("killed before the answer was kept")
            return answer

        graph = graph_of(dying).compile(checkpointer=InMemorySaver())
        with pytest.raises(ConnectionError):
            await go_on(graph, "thread-1")
        await go_on(graph, "thread-1")
        await go_on(graph, "thread-1")
    assert asked.keys == {"thread-1/call_model": 1, "thread-1/store/call_model": 2, "thread-1/api/call_model": 1}
    assert (asked.total, asked.again, len(CALLS)) == (4, 1, 3)


async def test_our_side_asks_the_same_three_questions(client: Client) -> None:
    async with model(0.0) as asked, asking(asked.url) as ask, built(client, Faked(MemoryStore(), Slow(ask))) as name:
        pass
    task = f"{name}-task-"
    assert asked.keys == {f"{name}/plan/1/1": 1, f"{task}store/change/1/1": 1, f"{task}api/change/1/1": 1}
