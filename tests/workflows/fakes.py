"""An outside world for sagas: every activity by its wire name, with the behaviour that a scenario gives it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.accounts.forecasting import ForecastInput
from activities.accounts.money import PlaceInput, SpentInput
from activities.gates import BaseReport, GateReport, MeasureBaseInput, RunGatesInput
from activities.intake import AdmitBuildInput, AdmittedBuild, FetchBaseInput
from activities.models import CalledModel, CallModelInput
from activities.packets import Packed, PackInput
from activities.planning import AdoptedPlan, AdoptPlanInput, CheckedPlan, CheckPlanInput, TaskBrief
from activities.prompts import RenderAgainInput, RenderChangeInput, RenderedPrompt, RenderPlanInput, RenderReviewInput
from activities.records import CloseUndoInput, RecordEventsInput, RegisterUndoInput
from activities.repository.changes import AdvanceHeadInput, AppliedChange, ApplyChangeInput
from activities.repository.landing import CompensateInput, ForwardInput, Landed, LandInput
from activities.repository.merging import (
    FetchTargetInput,
    RebasedCommit,
    RebaseInput,
    TakeCommitInput,
    TakenCommit,
)
from activities.repository.snapshots import FindSnapshotInput, FoundSnapshot, PinSnapshotInput, RestoreSnapshotInput
from activities.reviewing import CheckedReview, CheckReviewInput
from activities.sandboxed.environments import Prepared, PrepareInput
from domain.build.project import Consent, Limits
from domain.money.amounts import Amount, Range
from domain.money.budget import Budget, Spent
from domain.money.forecast import Forecast
from domain.money.usage import Usage
from domain.ports.store import Event

GREEN = GateReport(green=True, reason="3 tests passed", ran=3, log="log", report="", seconds=0.1)
RED = GateReport(green=False, reason="1 of 3 tests failed", ran=3, log="log", report="trimmed", seconds=0.1)
BASE = BaseReport(
    usable=True,
    green=True,
    reason="3 tests passed",
    ran=3,
    failing=0,
    flaky=0,
    baseline="before",
    log="log",
    report="",
    seconds=0.2,
)
FORECAST = Forecast(basis="a guess", tasks=(), more=0, totals=Range(low=Amount(), expected=Amount(), high=Amount()))
CLEAN = CheckedReview(findings="findings", high=(), medium=0, low=1)
USAGE = Usage(input_tokens=10, output_tokens=5, cost_micros=42)
TASKS = (
    TaskBrief(id="store", title="Storage", depends_on=()),
    TaskBrief(id="api", title="API", depends_on=("store",)),
)


def refuse(kind: str, sentence: str) -> ApplicationError:
    """A failure as an activity of ours raises it for good."""
    return ApplicationError(sentence, type=kind, non_retryable=True)


def fits(call: CallModelInput) -> CalledModel:
    """An answer that fits its schema."""
    name = f"{call.key.step}-{call.key.attempt}"
    return CalledModel(model=call.model, answer="raw", value=name, problems=(), usage=USAGE, faults=())


def unfit(call: CallModelInput) -> CalledModel:
    """An answer that does not."""
    return CalledModel(model=call.model, answer="raw", value="", problems=("no JSON",), usage=USAGE, faults=())


@dataclass
class World:
    """What the activities did, in order, and how they behave; a scenario replaces what it is about."""

    model: Callable[[CallModelInput], CalledModel] = fits
    check: Callable[[CheckPlanInput], CheckedPlan] = lambda _: CheckedPlan(tasks=TASKS, problems=())
    apply: Callable[[ApplyChangeInput], None] = lambda _: None
    gates: Callable[[RunGatesInput], GateReport] = lambda _: GREEN
    base: BaseReport = BASE
    prepare: Callable[[PrepareInput], Prepared] = lambda _: Prepared(key="env")
    needs: Callable[[ApplyChangeInput], tuple[str, ...]] = lambda _: ()
    snapshots: dict[str, PinSnapshotInput] = field(default_factory=dict)
    pin: Callable[[PinSnapshotInput], None] = lambda _: None
    sets_up: bool = False
    land: Callable[[LandInput], None] = lambda _: None
    forget: Callable[[CompensateInput], bool] = lambda _: True
    rebase: Callable[[RebaseInput], RebasedCommit] = lambda r: RebasedCommit(commit=f"{r.head}@{r.onto}", diff="d")
    take: Callable[[TakeCommitInput], TakenCommit] = lambda r: TakenCommit(commit=r.name, base="c0", diff="d")
    target: Callable[[], str] = lambda: "c0"
    forward: Callable[[ForwardInput], None] = lambda _: None
    review: Callable[[CheckReviewInput], CheckedReview] = lambda _: CLEAN
    place: Callable[[PlaceInput], None] = lambda _: None
    adopt: Callable[[AdoptPlanInput], AdoptedPlan] = lambda _: AdoptedPlan(plan="e" * 64, tasks=TASKS, problems=())
    touch: Callable[[ApplyChangeInput], tuple[str, ...]] = lambda r: (f"{r.task}.py",)
    consent: Consent = field(default_factory=lambda: Consent(approve=(), review=False))
    budget: Budget = field(default_factory=Budget)
    weights: Mapping[str, float] = field(default_factory=dict)
    validation: tuple[str, ...] = ("reviewer",)
    held: Callable[[CallModelInput], bool] = lambda call: call.key.step == "change"
    limits: Limits = field(default_factory=Limits)
    coding: tuple[str, ...] = ("coder", "second")
    hold: asyncio.Event | None = None
    stubborn: bool = False
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[tuple[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def of(self, name: str) -> list[Any]:
        """The requests of one activity, in order."""
        return [request for done, request in self.done if done == name]

    def kinds(self) -> list[str]:
        """The kinds of the recorded events, in order."""
        return [event.kind for event in self.events]

    def activities(self) -> list[Callable[..., Any]]:
        """All of them, for one worker."""
        return [getattr(self, name) for name in dir(self) if name.startswith("do_")]

    @activity.defn(name="admit_build")
    async def do_admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        self.done.append(("admit_build", request))
        if request.project == "nowhere":
            raise refuse("UnknownName", "unknown project 'nowhere'; known: notes")
        return AdmittedBuild(
            project="notes",
            spec="spec",
            limits=self.limits,
            reasoning=("planner",),
            coding=self.coding,
            heartbeat=2.0,
            validation=self.validation,
            consent=self.consent,
            budget=self.budget,
            sets_up=self.sets_up,
            weights=self.weights,
        )

    @activity.defn(name="prepare_environment")
    async def do_prepare_environment(self, request: PrepareInput) -> Prepared:
        self.done.append(("prepare_environment", request))
        return self.prepare(request)

    @activity.defn(name="measure_base")
    async def do_measure_base(self, request: MeasureBaseInput) -> BaseReport:
        self.done.append(("measure_base", request))
        return self.base

    @activity.defn(name="forecast_build")
    async def do_forecast_build(self, request: ForecastInput) -> Any:
        self.done.append(("forecast_build", request))
        return asdict(FORECAST)

    @activity.defn(name="pin_snapshot")
    async def do_pin_snapshot(self, request: PinSnapshotInput) -> str:
        self.done.append(("pin_snapshot", request))
        self.pin(request)
        digest = f"state-{request.build}-{request.number}"
        self.snapshots[digest] = request
        return digest

    @activity.defn(name="find_snapshot")
    async def do_find_snapshot(self, request: FindSnapshotInput) -> FoundSnapshot:
        self.done.append(("find_snapshot", request))
        row = next((e for e in self.events if e.kind == "snapshot.taken" and e.data["token"] == request.token), None)
        if row is None:
            raise refuse("InvalidInput", f"there is no snapshot {request.token}")
        told = {
            name: row.data[name] for name in ("token", "number", "phase", "state", "base", "head", "spent", "calls")
        }
        return FoundSnapshot(build=row.build, project="notes", **told)

    @activity.defn(name="restore_snapshot")
    async def do_restore_snapshot(self, request: RestoreSnapshotInput) -> dict[str, Any]:
        self.done.append(("restore_snapshot", request))
        return dict(self.snapshots[request.state].state)

    @activity.defn(name="fetch_base")
    async def do_fetch_base(self, request: FetchBaseInput) -> str:
        self.done.append(("fetch_base", request))
        return "c0"

    @activity.defn(name="render_plan_prompt")
    async def do_render_plan(self, request: RenderPlanInput) -> RenderedPrompt:
        self.done.append(("render_plan_prompt", request))
        return RenderedPrompt(prompt="plan-prompt", size=1)

    @activity.defn(name="render_change_prompt")
    async def do_render_change(self, request: RenderChangeInput) -> RenderedPrompt:
        self.done.append(("render_change_prompt", request))
        return RenderedPrompt(prompt="change-prompt", size=1)

    @activity.defn(name="render_again_prompt")
    async def do_render_again(self, request: RenderAgainInput) -> RenderedPrompt:
        self.done.append(("render_again_prompt", request))
        return RenderedPrompt(prompt=f"{request.prompt}-again", size=1)

    @activity.defn(name="call_model")
    async def do_call_model(self, request: CallModelInput) -> CalledModel:
        self.done.append(("call_model", request))
        if self.hold is not None and self.held(request):
            await self._held()
        return self.model(request)

    @activity.defn(name="check_plan")
    async def do_check_plan(self, request: CheckPlanInput) -> CheckedPlan:
        self.done.append(("check_plan", request))
        return self.check(request)

    @activity.defn(name="apply_change")
    async def do_apply_change(self, request: ApplyChangeInput) -> AppliedChange:
        self.done.append(("apply_change", request))
        self.apply(request)
        if needs := self.needs(request):
            return AppliedChange(commit="", written="", diff="", files=0, needs=needs)
        touched = self.touch(request)
        return AppliedChange(
            commit=f"{request.task}-{request.attempt}", written="w", diff="d", files=1, touched=touched
        )

    @activity.defn(name="run_gates")
    async def do_run_gates(self, request: RunGatesInput) -> GateReport:
        self.done.append(("run_gates", request))
        return self.gates(request)

    @activity.defn(name="advance_head")
    async def do_advance_head(self, request: AdvanceHeadInput) -> None:
        self.done.append(("advance_head", request))

    @activity.defn(name="land_result")
    async def do_land_result(self, request: LandInput) -> Landed:
        self.done.append(("land_result", request))
        self.land(request)
        return Landed(branch=f"mendwork/{request.build}", commit=request.commit, diff="diff")

    @activity.defn(name="retract_result")
    async def do_retract_result(self, request: CompensateInput) -> bool:
        self.done.append(("retract_result", request))
        return True

    @activity.defn(name="forget_build")
    async def do_forget_build(self, request: CompensateInput) -> bool:
        self.done.append(("forget_build", request))
        return self.forget(request)

    @activity.defn(name="rebase_commits")
    async def do_rebase_commits(self, request: RebaseInput) -> RebasedCommit:
        self.done.append(("rebase_commits", request))
        return self.rebase(request)

    @activity.defn(name="take_commit")
    async def do_take_commit(self, request: TakeCommitInput) -> TakenCommit:
        self.done.append(("take_commit", request))
        return self.take(request)

    @activity.defn(name="fetch_target")
    async def do_fetch_target(self, request: FetchTargetInput) -> str:
        self.done.append(("fetch_target", request))
        return self.target()

    @activity.defn(name="forward_target")
    async def do_forward_target(self, request: ForwardInput) -> None:
        self.done.append(("forward_target", request))
        self.forward(request)

    @activity.defn(name="rewind_target")
    async def do_rewind_target(self, request: CompensateInput) -> bool:
        self.done.append(("rewind_target", request))
        return True

    @activity.defn(name="pack")
    async def do_pack(self, request: PackInput) -> Packed:
        self.done.append(("pack", request))
        content = json.dumps([dict(request.document), request.base, request.commit], sort_keys=True)
        return Packed(digest=hashlib.sha256(content.encode()).hexdigest(), diff="diff" if request.commit else "")

    @activity.defn(name="count_spent")
    async def do_count_spent(self, request: SpentInput) -> Spent:
        return Spent(settled=42)

    @activity.defn(name="take_place")
    async def do_take_place(self, request: PlaceInput) -> None:
        self.done.append(("take_place", request))
        self.place(request)

    @activity.defn(name="give_place")
    async def do_give_place(self, request: PlaceInput) -> None:
        self.done.append(("give_place", request))

    @activity.defn(name="release_build")
    async def do_release_build(self, request: CompensateInput) -> bool:
        self.done.append(("release_build", request))
        return True

    @activity.defn(name="render_review_prompt")
    async def do_render_review(self, request: RenderReviewInput) -> RenderedPrompt:
        self.done.append(("render_review_prompt", request))
        return RenderedPrompt(prompt="review-prompt", size=1)

    @activity.defn(name="check_review")
    async def do_check_review(self, request: CheckReviewInput) -> CheckedReview:
        self.done.append(("check_review", request))
        return self.review(request)

    @activity.defn(name="adopt_plan")
    async def do_adopt_plan(self, request: AdoptPlanInput) -> AdoptedPlan:
        self.done.append(("adopt_plan", request))
        return self.adopt(request)

    @activity.defn(name="record_events")
    async def do_record_events(self, request: RecordEventsInput) -> int:
        self.events.extend(request.events)
        return len(request.events)

    @activity.defn(name="register_undo")
    async def do_register_undo(self, request: RegisterUndoInput) -> None:
        self.done.append(("register_undo", request))

    @activity.defn(name="close_undo")
    async def do_close_undo(self, request: CloseUndoInput) -> None:
        self.done.append(("close_undo", request))

    async def _held(self) -> None:
        """Wait as a long model call does: beating, so that a cancellation arrives; it takes a moment to stop."""
        assert self.hold is not None
        self.holding.set()
        try:
            while not self.hold.is_set():
                activity.heartbeat()
                await asyncio.wait([asyncio.ensure_future(self.hold.wait())], timeout=0.2)
        except asyncio.CancelledError:
            self.done.append(("call_stopped", None))
            if not self.stubborn:
                raise
