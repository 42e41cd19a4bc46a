"""Scenarios of snapshots: a build is kept after every phase, and another goes on from there."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from activities.gates import RunGatesInput
from activities.planning import CheckedPlan, TaskBrief
from activities.prompts import RenderChangeInput
from domain.build.project import Consent
from domain.money.budget import Budget
from tests.workflows.fakes import GREEN, RED, World, refuse
from tests.workflows.running import UNATTENDED, build, failure_of

FIRST, SECOND = "build-notes-1", "build-notes-2"


def taken(world: World, name: str) -> dict[str, dict[str, Any]]:
    """The snapshots of one build by the phase that they were taken after; the first of each."""
    found: dict[str, dict[str, Any]] = {}
    for event in world.events:
        if event.kind == "snapshot.taken" and event.build == name:
            found.setdefault(event.data["after"], dict(event.data))
    return found


async def test_a_snapshot_is_taken_after_every_phase_with_what_the_next_one_needs(client: Client) -> None:
    world = World(consent=Consent(approve=(), review=True))
    await build(client, world, name=FIRST)
    kept = taken(world, FIRST)
    assert {after: row["phase"] for after, row in kept.items()} == {
        "intake": "plan",
        "plan": "tasks",
        "tasks": "tasks",  # after the first of two merges
        "review": "approve",
        "approve": "land",
    }
    assert [pin.number for pin in world.of("pin_snapshot")] == [1, 2, 3, 4, 5, 6]
    assert kept["intake"]["token"] == f"{FIRST}@1"
    assert kept["review"]["head"] == "api-1"
    assert all(pin.commits[0] == "c0" for pin in world.of("pin_snapshot"))
    assert world.of("pin_snapshot")[1].state["phase"] == "tasks"


async def test_a_plan_of_many_tasks_is_a_snapshot_ten_times_at_most(client: Client) -> None:
    tasks = tuple(TaskBrief(id=f"t{n}", title="T", depends_on=()) for n in range(24))
    world = World(check=lambda _: CheckedPlan(tasks=tasks, problems=()))
    await build(client, world, name=FIRST)
    among = [e for e in world.events if e.kind == "snapshot.taken" and e.data["after"] == "tasks"]
    assert len(among) == 8  # seven among the merges, one when all have ended


async def test_a_snapshot_that_cannot_be_had_is_said_and_holds_up_nothing(client: Client) -> None:
    def pin(_: Any) -> None:
        raise refuse("TooLarge", "the state has 300000 bytes")

    world = World(pin=pin)
    result = await build(client, world)
    assert result["status"] == "succeeded"
    skipped = [event.data for event in world.events if event.kind == "snapshot.skipped"]
    assert {row["sentence"] for row in skipped} == {"the state has 300000 bytes"}


class TestGoingOn:
    async def test_a_new_build_goes_on_exactly_there_and_names_its_parent(self, client: Client) -> None:
        world = World()
        await build(client, world, name=FIRST)
        before = len(world.done)
        token = taken(world, FIRST)["plan"]["token"]
        result = await build(client, world, {"resume": token, "user": "ann"}, name=SECOND)
        assert result["status"] == "succeeded"
        done = [name for name, _ in world.done[before:]]
        assert not {"admit_build", "fetch_base", "measure_base", "render_plan_prompt"} & set(done)
        assert done.index("register_undo") < done.index("restore_snapshot")
        (restored,) = [event.data for event in world.events if event.kind == "build.restored"]
        assert (restored["token"], restored["parent"], restored["phase"]) == (token, FIRST, "tasks")
        keys = {request.key.saga for name, request in world.done[before:] if name == "call_model"}
        assert keys == {f"{SECOND}-task-store", f"{SECOND}-task-api"}

    async def test_what_was_merged_before_the_snapshot_is_not_written_again(self, client: Client) -> None:
        world = World()
        await build(client, world, name=FIRST)
        before = len(world.done)
        token = taken(world, FIRST)["tasks"]["token"]
        result = await build(client, world, {"resume": token}, name=SECOND)
        assert result["tasks"] == ["store", "api"]
        written = [request.task for name, request in world.done[before:] if name == "apply_change"]
        assert written == ["api"]

    async def test_commits_are_dated_as_in_the_first_life(self, client: Client) -> None:
        world = World()
        await build(client, world, name=FIRST)
        dates = [request.at for request in world.of("apply_change")]
        await build(client, world, {"resume": taken(world, FIRST)["plan"]["token"]}, name=SECOND)
        assert [request.at for request in world.of("apply_change")] == [*dates, *dates]

    async def test_spending_carries_over_into_the_limit_of_the_new_build(self, client: Client) -> None:
        world = World(budget=Budget(build=1_000))
        await build(client, world, name=FIRST)
        assert world.of("call_model")[-1].budget.build == 1_000
        token = taken(world, FIRST)["plan"]["token"]
        await build(client, world, {"resume": token}, name=SECOND)
        assert world.of("call_model")[-1].budget.build == 1_000 - 42
        third = taken(world, SECOND)["tasks"]["token"]
        await build(client, world, {"resume": third}, name="build-notes-3")
        assert world.of("call_model")[-1].budget.build == 1_000 - 84

    async def test_a_token_that_stands_for_nothing_fails_with_its_sentence(self, client: Client) -> None:
        error = await failure_of(client, World(), {"resume": "build-notes-9@1"})
        assert (error.type, error.message) == ("InvalidInput", "there is no snapshot build-notes-9@1")

    async def test_models_can_only_be_replaced_where_a_build_goes_on(self, client: Client) -> None:
        error = await failure_of(client, World(), {"spec": "x", "models": ["other"]})
        assert error.type == "InvalidInput"
        assert "resume" in error.message


class TestEndingEarly:
    async def test_a_build_that_is_wanted_until_a_phase_stops_there_and_leaves_nothing(self, client: Client) -> None:
        world = World()
        result = await build(client, world, {**UNATTENDED, "until": "tasks"})
        assert (result["status"], result["branch"], result["commit"]) == ("stopped", "", "api-1")
        assert world.of("land_result") == []
        assert len(world.of("forget_build")) == 1

    async def test_an_unknown_phase_is_refused_with_those_there_are(self, client: Client) -> None:
        error = await failure_of(client, World(), {**UNATTENDED, "until": "lunch"})
        assert error.type == "UnknownName"
        assert "intake, land, plan" in error.message

    async def test_a_dry_run_plans_forecasts_and_undoes(self, client: Client) -> None:
        world = World()
        result = await build(client, world, {**UNATTENDED, "dry_run": True})
        assert result["status"] == "planned"
        assert [task.id for task in world.of("forecast_build")[0].tasks] == ["store", "api"]
        assert [event.data["forecast"] for event in world.events if event.kind == "build.forecast"]
        assert world.of("pin_snapshot") == world.of("apply_change") == world.of("land_result") == []
        assert [close.outcome for close in world.of("close_undo")] == ["undone", "undone"]


class TestAskingForMore:
    async def test_what_the_model_asks_for_is_shown_in_the_next_round_of_the_same_attempt(self, client: Client) -> None:
        rounds = iter([("a.py",), ("b.py", "a.py"), (), ()])
        world = World(needs=lambda _: next(rounds))
        result = await build(client, world)
        assert result["status"] == "succeeded"
        renders = [render for render in world.of("render_change_prompt") if render.task == "store"]
        assert [(r.needs, r.rounds) for r in renders] == [((), 3), (("a.py",), 2), (("a.py", "b.py"), 1)]
        keys = [(c.key.step, c.key.attempt) for c in world.of("call_model") if "-task-store" in c.key.saga]
        assert keys == [("change", 1), ("change-1", 1), ("change-2", 1)]

    async def test_three_rounds_and_then_a_question(self, client: Client) -> None:
        world = World(needs=lambda request: ("a.py",) if request.task == "store" else ())
        error = await failure_of(client, world, UNATTENDED)
        assert error.type == "NeedsExhausted"
        renders: list[RenderChangeInput] = world.of("render_change_prompt")
        assert [render.rounds for render in renders] == [3, 2, 1, 0]
        assert [event.data["left"] for event in world.events if event.kind == "change.needs"] == [3, 2, 1, 0]


class TestBaselines:
    async def test_each_gate_is_held_beside_what_was_before_it(self, client: Client) -> None:
        def gates(request: RunGatesInput) -> Any:
            task = "store" if "-task-store" in request.label else "api"
            return type(GREEN)(green=True, reason="ok", ran=4, log="log", report="", seconds=0.1, baseline=f"of {task}")

        world = World(gates=gates)
        await build(client, world)
        assert [run.baseline for run in world.of("run_gates")] == ["before", "of store"]

    async def test_a_red_gate_changes_no_baseline(self, client: Client) -> None:
        reports = iter([RED, GREEN, GREEN])
        world = World(gates=lambda _: next(reports))
        await build(client, world)
        assert [run.baseline for run in world.of("run_gates")][:2] == ["before", "before"]
