"""A delivery on a real Temporal server with a faked outside: what it does, in which order, and how it goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from activities.delivery.deploys import RunStepInput, StepReport
from domain.build.project import Consent
from domain.delivery.project import Delivery, Step
from domain.kpi.window import Window
from domain.ports.load import LoadOrder
from domain.ports.releases import Release
from domain.risk.policy import RiskPolicy
from tests.workflows.deliveries import BAD, GOOD, PRODUCTION_BEFORE, QUICK, REPORT, REQUEST, Outside, begin, delivering
from tests.workflows.fakes import refuse
from tests.workflows.running import until

UNTOUCHED = ("switch_production", "restore_production")
ALONE = {"project": "shop", "commit": "main", "by": "ada"}


async def deliver(client: Client, outside: Outside, request: Any = None) -> Any:
    async with delivering(client, outside) as queue:
        handle = await begin(client, queue, request)
        async with asyncio.timeout(60):
            return await handle.result()


async def failure(client: Client, outside: Outside, request: Any = None) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as caught:
        await deliver(client, outside, request)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def asked(outside: Outside, about: str) -> dict[str, Any]:
    def found() -> Any:
        return next((dict(e.data) for e in outside.events if e.kind == "ask.opened" and e.data["about"] == about), None)

    data: dict[str, Any] = await until(found)
    return data


def bad_from(number: int) -> Callable[[LoadOrder], Window]:
    return lambda o: Window(number=o.number, seconds=1, candidate=BAD if o.number >= number else GOOD, baseline=GOOD)


def failing(step: str, *, of: str = "", kind: str = "ReleaseDied") -> Callable[[str, Any], None]:
    """One activity fails for good; with ``of``, only for that site."""

    def fail(name: str, request: Any) -> None:
        if name == step and of in ("", getattr(request, "environment", "")):
            raise refuse(kind, f"{step} did not work")

    return fail


class TestTheWay:
    async def test_a_release_is_staged_tested_weighed_switched_watched_and_promoted(self, client: Client) -> None:
        outside = Outside()
        delivered = await deliver(client, outside)
        assert (delivered["status"], delivered["release"]) == ("promoted", 7)
        order = [n for n in outside.names() if n not in ("prove_live", "find_unit", "find_release", "assess_change")]
        assert order == [
            *("admit_delivery", "open_release", "join_lane", "snapshot_site", "build_artifact"),
            *("snapshot_site", "start_unit", "switch_staging", "run_integration", "count_past"),
            *("start_unit", "switch_production", "measure_window", "measure_window", "measure_window", "prune_units"),
        ]
        assert outside.production.live == {"production": 7, "staging": 7}
        last = outside.releases[-1]
        assert (last.status, last.previous, last.commit, last.artifact) == ("promoted", 6, "c1", "a7")
        assert [release.revision for release in outside.releases] == list(range(1, len(outside.releases) + 1))
        assert all(seconds >= 0 for seconds in last.record["timings"].values())

    async def test_a_project_with_a_set_up_is_built_and_tested_in_the_environment_of_its_commit(
        self, client: Client
    ) -> None:
        outside = Outside(sets_up=True)
        await deliver(client, outside)
        (prepared,) = outside.of("prepare_environment")
        key = f"env-{prepared.commit}"
        assert [build.environment for build in outside.of("build_artifact")] == [key]
        assert [run.environment for run in outside.of("run_integration")] == [key]

    async def test_each_undo_is_registered_before_its_step_acts_and_final_at_the_end(self, client: Client) -> None:
        outside = Outside()
        await deliver(client, outside)
        acted = [
            n for n, _ in outside.done if n in ("register_undo", "start_unit", "switch_staging", "switch_production")
        ]
        assert acted == [
            *("register_undo", "start_unit", "register_undo", "switch_staging"),
            *("register_undo", "start_unit", "register_undo", "switch_production"),
        ]
        assert {r.outcome for r in outside.of("close_undo")} == {"final"}

    async def test_the_switch_names_what_was_approved_by_the_same_artifact(self, client: Client) -> None:
        outside = Outside()
        await deliver(client, outside)
        kinds = outside.kinds()
        assert kinds.index("release.approved") < kinds.index("release.switched")
        assert outside.event("release.approved")["artifact"] == outside.event("release.switched")["artifact"] == "a7"
        assert outside.event("release.approved")["how"] == "policy"

    async def test_a_commit_of_yours_is_fetched_and_pinned_and_a_person_asked(self, client: Client) -> None:
        outside = Outside()
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue, ALONE)
            ask = await asked(outside, "release")
            assert ask["saga"] == handle.id
            ruling = await handle.execute_update("approve", {"digest": ask["digest"][:12], "by": "bob"})
            assert ruling["outcome"] == "accepted"
            assert (await handle.result())["status"] == "promoted"
        assert outside.event("release.approved") | {"digest": ""} == {
            "artifact": "a7",
            "digest": "",
            "by": "bob",
            "how": "person",
        }
        assert outside.releases[-1].commit == "main-pinned"
        assert outside.releases[-1].record["approved"][0]["by"] == "bob"

    async def test_a_first_release_has_no_baseline(self, client: Client) -> None:
        outside = Outside(window=lambda o: Window(number=o.number, seconds=1, candidate=GOOD))
        outside.production.live["production"] = 0
        await deliver(client, outside)
        assert {order.baseline for order in outside.of("measure_window")} == {""}


class TestBeforeTheSwitch:
    @pytest.mark.parametrize("step", ["build_artifact", "start_unit", "switch_staging", "run_integration"])
    async def test_what_fails_leaves_everything_as_it_was(self, client: Client, step: str) -> None:
        outside = Outside(before=failing(step))
        assert f"{step} did not work" in (await failure(client, outside)).message
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert not set(UNTOUCHED) & set(outside.names())
        assert outside.releases[-1].status == "undelivered"

    @pytest.mark.parametrize("step", ["snapshot_site", "assess_change", "run_step"])
    async def test_what_fails_beside_the_release_itself_leaves_everything_as_it_was(
        self, client: Client, step: str
    ) -> None:
        own = Step(name="migrate", run=("up",), kind="compensatable", undo=("down",))
        outside = Outside(
            delivery=Delivery(target="local", run=("serve",), watch=QUICK, steps=(own,)), before=failing(step)
        )
        assert f"{step} did not work" in (await failure(client, outside)).message
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert not set(UNTOUCHED) & set(outside.names())
        assert "release.rolled_back" not in outside.kinds()

    async def test_the_unit_for_production_that_does_not_start_leaves_everything_as_it_was(
        self, client: Client
    ) -> None:
        outside = Outside(before=failing("start_unit", of="production"))
        assert "start_unit did not work" in (await failure(client, outside)).message
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert not set(UNTOUCHED) & set(outside.names())
        assert "switch_staging" in outside.names()

    async def test_red_integration_tests_end_it(self, client: Client) -> None:
        red = replace(REPORT, green=False, reason="1 of 3 tests failed")
        outside = Outside(integration=lambda _: red)
        error = await failure(client, outside)
        assert error.type == "IntegrationRed"
        assert outside.production.seen() == PRODUCTION_BEFORE

    async def test_a_release_that_its_lane_refuses_touches_nothing(self, client: Client) -> None:
        outside = Outside(joined=lambda _: {"refused": True, "reason": "production has release 8, which is newer"})
        error = await failure(client, outside)
        assert (error.type, error.message) == ("OlderRelease", "production has release 8, which is newer")
        assert "build_artifact" not in outside.names()

    async def test_a_person_who_rejects_it_is_told_in_the_record(self, client: Client) -> None:
        outside = Outside(consent=Consent(approve=("release",)))
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            ask = await asked(outside, "release")
            await handle.signal("reject", {"digest": ask["digest"][:12], "by": "bob", "reason": "on a Friday?"})
            with pytest.raises(WorkflowFailureError, match="Workflow execution failed"):
                await handle.result()
        assert "bob rejected the release: on a Friday?" in outside.releases[-1].sentence
        assert outside.production.seen() == PRODUCTION_BEFORE

    async def test_unattended_what_would_be_asked_is_refused(self, client: Client) -> None:
        outside = Outside(consent=Consent(approve=("release",)))
        error = await failure(client, outside, {**REQUEST, "unattended": True})
        assert error.type == "Escalated"

    async def test_an_abort_while_it_is_staged_takes_it_back(self, client: Client) -> None:
        outside = Outside(held="run_integration")
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            await outside.holding.wait()
            await handle.signal("abort", {"by": "bob", "reason": "stop"})
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert outside.releases[-1].sentence.startswith("bob: stop")


class TestTheProjectsOwnSteps:
    def outside(self, *steps: Step, **more: Any) -> Outside:
        return Outside(delivery=Delivery(target="local", run=("serve",), watch=QUICK, steps=steps), **more)

    async def test_run_before_traffic_and_are_undone_after_it_is_back(self, client: Client) -> None:
        step = Step(name="migrate", run=("up",), kind="compensatable", undo=("down",))
        outside = self.outside(step, window=bad_from(1))
        await failure(client, outside)
        order = [
            n for n in outside.names() if n in ("run_step", "switch_production", "restore_production", "undo_step")
        ]
        assert order == ["run_step", "switch_production", "restore_production", "undo_step"]
        assert outside.names().index("undo_step") < outside.names().index("retire_unit")

    async def test_one_that_fails_ends_it_before_the_switch(self, client: Client) -> None:
        def red(_: RunStepInput) -> StepReport:
            return StepReport(green=False, sentence="no such table")

        outside = self.outside(Step(name="check", run=("look",), kind="read-only"), step=red)
        error = await failure(client, outside)
        assert "no such table" in error.message
        assert "switch_production" not in outside.names()
        assert "undo_step" not in outside.names()

    async def test_a_final_one_always_asks_a_person_also_when_the_risk_is_low(self, client: Client) -> None:
        outside = self.outside(Step(name="drop", run=("drop", "old"), kind="final"))
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue, {**REQUEST, "approved": ["release"]})
            ask = await asked(outside, "final")
            assert "run_step" not in outside.names()
            await handle.signal("approve", {"digest": ask["digest"][:12], "by": "bob"})
            await handle.result()
        assert [entry["what"] for entry in outside.releases[-1].record["approved"]] == ["release", "step drop"]


class TestTheRisk:
    async def test_above_the_ceiling_it_asks_even_when_it_was_approved_beforehand(self, client: Client) -> None:
        made = {**REQUEST["made"], "high": 3, "attempts": 4, "reviewed": ""}  # type: ignore[dict-item]
        outside = Outside(consent=Consent(approve=(), approval_seconds=1.0))
        outside.touched = replace(
            outside.touched, files=80, lines=4000, novel=60, paths=("migrations/1.sql", "auth/x.py", "pyproject.toml")
        )
        outside.touched = replace(outside.touched, paths=(*outside.touched.paths, ".github/workflows/ci.yml"))
        error = await failure(client, outside, {**REQUEST, "made": made, "approved": ["release"]})
        scored = outside.event("risk.scored")
        assert scored["risk"] > 0.7
        assert error.type == "Escalated"
        assert {term["name"] for term in scored["terms"]} >= {"files", "lines", "migrations", "auth", "findings"}

    async def test_below_the_limit_beforehand_counts_and_says_so(self, client: Client) -> None:
        outside = Outside(consent=Consent(approve=("release",)))
        await deliver(client, outside, {**REQUEST, "approved": ["release"]})
        assert outside.event("release.approved")["how"] == "beforehand"

    @pytest.mark.parametrize(("limit", "asks"), [(0.01, True), (0.7, False)])
    async def test_above_the_projects_own_limit_a_person_is_asked(
        self, client: Client, limit: float, asks: bool
    ) -> None:
        delivery = Delivery(target="local", run=("serve",), watch=QUICK, risk=RiskPolicy(limit=limit))
        outside = Outside(delivery=delivery)
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            if asks:
                ask = await asked(outside, "release")
                assert "(the project's limit)" in ask["sentence"]
                await handle.signal("approve", {"digest": ask["digest"][:12], "by": "bob"})
            assert (await handle.result())["status"] == "promoted"
        assert ("ask.opened" in outside.kinds()) == asks


class TestGoingBack:
    async def test_a_breach_leads_traffic_back_and_proves_it(self, client: Client) -> None:
        outside = Outside(window=bad_from(2))
        error = await failure(client, outside)
        assert error.type == "KpiBreach"
        assert outside.production.seen() == PRODUCTION_BEFORE
        back = outside.event("release.rolled_back")
        assert (back["release"], back["to"], back["proof"]["ok"]) == (7, 6, True)
        assert outside.releases[-1].status == "rolled back"
        assert len(outside.releases[-1].record["watch"]["series"]) >= 2
        assert outside.event("delivery.ended")["fault"] == "KpiBreach"

    @pytest.mark.parametrize(("kind", "status"), [("PortTaken", "undelivered"), ("TargetUnavailable", "rolled back")])
    async def test_a_switch_that_fails_and_one_that_nobody_knows_of_both_end_as_before(
        self, client: Client, kind: str, status: str
    ) -> None:
        outside = Outside(before=failing("switch_production", kind=kind))
        error = await failure(client, outside)
        assert (error.type, outside.releases[-1].status) == (kind, status)
        assert outside.production.seen() == PRODUCTION_BEFORE

    async def test_a_release_that_is_not_seen_to_serve_is_led_back(self, client: Client) -> None:
        outside = Outside(before=failing("prove_live", of="production"))
        assert "prove_live did not work" in (await failure(client, outside)).message
        assert outside.releases[-1].status == "rolled back"
        assert outside.production.seen() == PRODUCTION_BEFORE

    @pytest.mark.parametrize("how", ["signal", "update"])
    async def test_a_person_who_wants_it_back_has_it_back(self, client: Client, how: str) -> None:
        outside = Outside(held="measure_window")
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            await outside.holding.wait()
            say = handle.signal if how == "signal" else handle.execute_update
            await say("roll_back", {"by": "bob", "reason": "looks odd"})
            outside.hold.set()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert "bob" in outside.releases[-1].sentence

    async def test_an_abort_during_the_switch_lets_it_finish_and_then_leads_back(self, client: Client) -> None:
        outside = Outside(held="switch_production")
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            await outside.holding.wait()
            await handle.signal("abort", {"by": "bob", "reason": "stop"})
            await until(lambda: True)
            outside.hold.set()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        assert outside.names().count("switch_production") == 1
        assert outside.names().index("restore_production") > outside.names().index("switch_production")
        assert outside.production.seen() == PRODUCTION_BEFORE

    async def test_what_cannot_be_led_back_is_never_called_rolled_back(self, client: Client) -> None:
        outside = Outside(window=bad_from(1), restored=lambda r: r.environment != "production")
        error = await failure(client, outside)
        last = outside.releases[-1]
        assert last.status == "unclear"
        assert "production of shop leads to release 7 now" in error.message
        assert "mendwork rollback 7 --project shop --to 6" in " ".join(last.record["residues"])
        assert "release.rolled_back" not in outside.kinds()

    async def test_an_undecided_watch_asks_and_a_breach_meanwhile_still_leads_back(self, client: Client) -> None:
        thin = replace(GOOD, asked=20, failed=0)
        breach = asyncio.Event()

        def window(order: LoadOrder) -> Window:
            arm = BAD if breach.is_set() else thin
            return Window(number=order.number, seconds=1, candidate=arm, baseline=thin)

        delivery = Delivery(
            target="local", run=("serve",), watch=replace(QUICK, on_no_data="ask", on_inconclusive="ask")
        )
        outside = Outside(delivery=delivery, window=window)
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            await asked(outside, "watch")
            breach.set()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        assert outside.production.seen() == PRODUCTION_BEFORE

    async def test_an_undecided_watch_is_promoted_by_a_person(self, client: Client) -> None:
        thin = replace(GOOD, asked=20, failed=0)
        delivery = Delivery(
            target="local", run=("serve",), watch=replace(QUICK, on_no_data="ask", on_inconclusive="ask")
        )
        outside = Outside(
            delivery=delivery, window=lambda o: Window(number=o.number, seconds=1, candidate=thin, baseline=thin)
        )
        async with delivering(client, outside) as queue:
            handle = await begin(client, queue)
            ask = await asked(outside, "watch")
            await handle.signal("answer", {"ask": ask["id"], "choice": "promote", "by": "bob"})
            assert (await handle.result())["status"] == "promoted"


class TestARollbackThatIsAskedFor:
    def outside(self) -> Outside:
        six = Release(
            project="shop", number=6, saga="s", revision=1, kind="deliver", status="promoted", commit="c0", previous=5
        )
        return Outside(past=[six])

    async def test_goes_to_the_release_before_and_freezes_the_lane(self, client: Client) -> None:
        outside = self.outside()
        request = {"project": "shop", "kind": "rollback", "release": 6, "by": "bob", "reason": "slow"}
        delivered = await deliver(client, outside, request)
        assert delivered["status"] == "rolled back"
        assert outside.production.live["production"] == 5
        assert "build_artifact" not in outside.names()

    async def test_that_cannot_be_proven_is_undone_and_never_called_rolled_back(self, client: Client) -> None:
        outside = self.outside()
        outside.restored = lambda request: request.to == 6
        error = await failure(client, outside, {"project": "shop", "kind": "rollback", "release": 6, "by": "bob"})
        assert "does not answer with release 5" in error.message
        assert outside.production.seen() == PRODUCTION_BEFORE
        assert outside.releases[-1].status == "undelivered"
        assert "release.rolled_back" not in outside.kinds()

    async def test_of_what_does_not_serve_is_refused(self, client: Client) -> None:
        outside = self.outside()
        error = await failure(client, outside, {"project": "shop", "kind": "rollback", "release": 4, "to": 3})
        assert "release 4 does not serve" in error.message
        assert outside.production.seen() == PRODUCTION_BEFORE


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({}, "the field 'project' is missing"),
        ({"project": "shop"}, "name the commit"),
        ({"project": "shop", "kind": "undo"}, "unknown kind of delivery"),
        ({"project": "shop", "kind": "rollback"}, "name the release"),
        ({"project": "shop", "kind": "rollback", "release": 3, "to": 3}, "to an older one"),
        ("shop", "one JSON object"),
        (None, "one JSON object"),
    ],
)
async def test_a_mistyped_start_fails_at_once_with_one_sentence(client: Client, request_: Any, sentence: str) -> None:
    outside = Outside()
    async with delivering(client, outside) as queue:
        handle: WorkflowHandle[Any, Any] = await client.start_workflow(
            "DeliverySaga", request_, id=f"deliver-{queue}", task_queue=queue
        )
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert sentence in caught.value.cause.message


async def test_what_nobody_of_ours_would_say_is_no_harm(client: Client) -> None:
    outside = Outside(held="build_artifact")
    async with delivering(client, outside) as queue:
        handle = await begin(client, queue)
        await outside.holding.wait()
        for name in ("lane", "undecided", "approve", "answer", "roll_back", "abort"):
            for raw in (None, "yes", 7, ["x"], {"position": "one", "to": "x", "by": 3}):
                if name not in ("roll_back", "abort") or raw is not None:  # nothing said is a plain wish
                    await handle.signal(name, raw)
        outside.hold.set()
        assert (await handle.result())["status"] == "promoted"
    assert outside.kinds().count("answer.refused") >= 10


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_workers_clock_that_jumps_expires_nothing_and_delays_nothing(client: Client, hours: int) -> None:
    outside = Outside(consent=Consent(approve=("release",), approval_seconds=120.0))
    async with delivering(client, outside) as queue:
        handle = await begin(client, queue)
        ask = await asked(outside, "release")
        with time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=True):
            await handle.signal("approve", {"digest": ask["digest"][:12], "by": "bob"})
            async with asyncio.timeout(30):
                assert (await handle.result())["status"] == "promoted"
    assert outside.event("release.approved")["by"] == "bob"
    assert all(0 <= seconds < 60 for seconds in outside.releases[-1].record["timings"].values())
