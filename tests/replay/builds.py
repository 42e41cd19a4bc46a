"""The builds whose histories are recorded: every way that a build and its tasks can take, with a faked outside."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.models import CalledModel, CallModelInput
from activities.planning import CheckedPlan, TaskBrief
from activities.repository.merging import RebasedCommit
from activities.reviewing import CheckedReview, FoundHigh
from activities.sandboxed.environments import Prepared, PrepareInput
from domain.build.project import Consent, Limits
from tests.workflows.fakes import CLEAN, GREEN, RED, World, fits, refuse, unfit
from tests.workflows.running import opened
from tests.workflows.test_delivery_of_a_build import Delivered, ScriptedDelivery
from workflows.build_saga import BuildSaga
from workflows.task_saga import TaskSaga

TASKS = ("store", "api")


def troubled() -> World:
    """A plan that is sent back, a model that fails for good, a red attempt, a refused change; it succeeds."""
    reports = iter([RED, GREEN, GREEN])
    refused = iter([True])

    def model(call: CallModelInput) -> CalledModel:
        if call.key.step == "plan" and call.key.turn == 1:
            return unfit(call)
        if call.model == "coder":
            raise refuse("ProviderRefused", "the key is wrong")
        return fits(call)

    def apply(request: object) -> None:
        if next(refused, False):
            raise refuse("InvalidChange", "../x: leads out of the repository")

    return World(model=model, gates=lambda _: next(reports), apply=apply)


def no_landing() -> World:
    """Everything is built, and the branch is taken."""

    def land(request: object) -> None:
        raise refuse("BranchTaken", "mendwork/x exists")

    return World(land=land)


def side_by_side(**more: Any) -> World:
    """Two tasks at once: the second merge is brought on top of the first."""
    tasks = tuple(TaskBrief(id=name, title=name, depends_on=(), files=(f"{name}.py",)) for name in TASKS)
    return World(check=lambda _: CheckedPlan(tasks=tasks, problems=()), **more)


def conflicting() -> World:
    """The second merge conflicts once; its task is written again."""
    tries = iter([RebasedCommit(commit="", conflicts=("app.py",), report="both sides")])
    return side_by_side(rebase=lambda request: next(tries, RebasedCommit(commit="merged", diff="d")))


def reviewed() -> World:
    """A high finding goes back to its task once; the target branch is forwarded after it moved."""
    high = FoundHigh(task="store", sentence="store.py:3: loses data", report="told")
    found = iter([CheckedReview(findings="f", high=(high,), medium=0, low=0)])
    consent = Consent(approve=(), review=True, land="target")
    return World(consent=consent, review=lambda _: next(found, CLEAN), target=lambda: "c9")


def asking() -> World:
    """A model asks for more of the repository before it writes."""
    rounds = iter([("a.py",)])
    return World(needs=lambda _: next(rounds, ()))


def preparing() -> World:
    """Dependencies are set up; one change cannot be, another wants a package that nobody knows."""
    broken = iter([True])

    def prepare(request: PrepareInput) -> Prepared:
        if request.commit == "store-1" and next(broken, False):
            raise refuse("SetupFailed", "the set-up command exited with 1")
        new = request.commit.startswith("api") and not request.allowed
        return Prepared(key="", unknown=("left-pat",)) if new else Prepared(key="env", built=True)

    return World(sets_up=True, prepare=prepare)


async def nobody(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """Nobody says anything."""


async def cancels(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """While a model answers."""
    await world.holding.wait()
    await handle.cancel()


async def aborts(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """While a model answers, after a pause that was ended."""
    await world.holding.wait()
    await handle.signal("pause", {"by": "ann"})
    await handle.execute_update("resume_now", {"by": "ann"})
    await handle.signal("raise_limits", {"task_budget": 5, "by": "ann"})
    await handle.signal("abort", {"by": "ann", "reason": "not needed"})


async def allows(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """The package."""
    asked = await opened(world, "task")
    await handle.execute_update("answer", {"ask": asked["id"], "choice": "allow", "by": "ann"})


async def goes_on(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """Another build, from the snapshot in the middle of the first one's tasks."""
    await handle.result()
    row = next(e for e in world.events if e.kind == "snapshot.taken" and e.data["after"] == "tasks")
    queue = handle.id.removeprefix("build-notes-")
    request = {"resume": row.data["token"], "strategy": "smallest"}
    another = await handle._client.start_workflow("BuildSaga", request, id=f"{handle.id}{ON}", task_queue=queue)
    await another.result()


async def reports(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """Its delivery, once it runs."""
    delivery = handle._client.get_workflow_handle(f"{handle.id}-release")
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(RPCError):  # it does not run yet
                await delivery.signal("end_with", {"release": 7, "status": "promoted", "sentence": "it serves"})
                return
            await asyncio.sleep(0.02)


async def decides(handle: WorkflowHandle[Any, Any], world: World) -> None:
    """The plan is edited and approved, a stuck task retried, the change rejected once and approved."""
    await opened(world, "plan")
    await handle.execute_update("edit_plan", {"plan": {}, "by": "ann"})
    await handle.signal("approve", {"digest": (await opened(world, "plan", number=2))["digest"], "by": "ann"})
    await opened(world, "task")
    await handle.signal("answer", {"choice": "retry", "reason": "use a list", "by": "ann"})
    first = await opened(world, "change")
    await handle.execute_update("reject", {"digest": first["digest"], "reason": "too clever", "by": "bob"})
    again = await opened(world, "plan", number=3)
    await handle.signal("approve", {"digest": again["digest"], "by": "ann"})
    second = await opened(world, "change", number=2)
    await handle.signal("approve", {"digest": second["digest"], "by": "ann"})


def undecided() -> World:
    """Everything is asked; the task store is red at first."""
    reds = iter([RED] * 3)

    def model(call: CallModelInput) -> CalledModel:
        answered = fits(call)
        return replace(answered, value=f"{call.key.attempt:064x}") if call.key.step == "plan" else answered

    world = World(consent=Consent(approve=("plan", "change"), review=False), model=model)
    world.gates = lambda request: next(reds, GREEN) if "-task-store/" in request.label else GREEN
    return world


Drive = Callable[[WorkflowHandle[Any, Any], World], Awaitable[None]]
SCENARIOS: Mapping[str, tuple[Callable[[], World], Drive]] = {
    "plain": (World, nobody),
    "parallel": (side_by_side, nobody),
    "conflict": (conflicting, nobody),
    "troubled": (troubled, nobody),
    "exhausted": (lambda: World(gates=lambda request: RED if request.written else GREEN), nobody),
    "taken": (no_landing, nobody),
    "reviewed": (reviewed, nobody),
    "decided": (undecided, decides),
    "continued": (lambda: World(limits=Limits(history_events=70)), nobody),
    "asking": (asking, nobody),
    "preparing": (preparing, allows),
    "planned": (World, nobody),
    "resumed": (World, goes_on),
    "cancelled": (lambda: World(hold=asyncio.Event()), cancels),
    "aborted": (lambda: World(hold=asyncio.Event()), aborts),
    "delivered": (Delivered, reports),
}
STARTED: Mapping[str, Mapping[str, Any]] = {"exhausted": {"unattended": True}, "planned": {"dry_run": True}}
"""What a scenario's request says beside its spec."""
ON = "-on"
"""The name of a build that goes on from the scenario's."""


async def record(client: Client, name: str, write: Callable[[WorkflowHistory, str], None]) -> None:
    """Run one scenario and write the histories of its root, all its runs, and of its tasks."""
    build, (make, drive) = f"build-notes-{name}", SCENARIOS[name]
    world = make()
    everything = world.activities()
    async with contextlib.AsyncExitStack() as stack:
        for suffix in ("-workspace", "-model", "-sandbox"):
            await stack.enter_async_context(Worker(client, task_queue=f"{name}{suffix}", activities=everything))
        sagas = [BuildSaga, TaskSaga, ScriptedDelivery]
        await stack.enter_async_context(Worker(client, task_queue=name, workflows=sagas, activities=everything))
        spec = {"spec": "# Tags", "project": "notes", **STARTED.get(name, {})}
        handle = await client.start_workflow("BuildSaga", spec, id=build, task_queue=name)
        await drive(handle, world)
        with contextlib.suppress(WorkflowFailureError):  # the scenarios that end so
            await handle.result()
    run: str | None = handle.first_execution_run_id
    for number in itertools.count(1):
        history = await client.get_workflow_handle(build, run_id=run).fetch_history()
        write(history, build if number == 1 else f"{build}-run-{number}")
        run = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
        if not run:
            break
    others = (f"{build}{ON}", *(f"{each}-task-{task}" for each in (build, f"{build}{ON}") for task in TASKS))
    for other in others:
        with contextlib.suppress(RPCError):  # a task that was never reached has no history
            write(await client.get_workflow_handle(other).fetch_history(), other)
