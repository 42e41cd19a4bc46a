"""An outside world for deliveries: every activity by its wire name, and a production that can be looked at."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Interceptor, Worker

from activities.delivery.admission import AdmitDeliveryInput, AdmittedDelivery, Assessed, AssessInput, PinCommitInput
from activities.delivery.artifacts import BuildArtifactInput, BuiltArtifact
from activities.delivery.deploys import (
    PruneInput,
    RunStepInput,
    SiteInput,
    StartedUnit,
    StepReport,
    SwitchInput,
    UnitInput,
)
from activities.delivery.integration import RunIntegrationInput
from activities.delivery.lanes import JoinLaneInput, LookInput
from activities.delivery.looking import Proof, Snapshot
from activities.delivery.releases import CountPastInput, FindReleaseInput, OpenReleaseInput, RecordReleaseInput
from activities.gates import GateReport
from activities.packets import Packed, PackInput
from activities.records import CloseUndoInput, RecordEventsInput, RegisterUndoInput
from activities.repository.landing import CompensateInput
from activities.sandboxed.environments import Prepared, PrepareInput
from domain.build.project import Consent
from domain.delivery.project import Delivery
from domain.kpi.policy import WatchPolicy
from domain.kpi.window import Arm, Window
from domain.ports.load import LoadOrder
from domain.ports.releases import Release
from domain.ports.sagas import RUNNING
from domain.ports.store import Event
from domain.risk.evidence import Past, Touched
from workflows.delivery.saga import DeliverySaga
from workflows.delivery.watch import KpiWatch

GOOD = Arm(asked=600, failed=6, p50=10.0, p95=20.0)
BAD = Arm(asked=600, failed=400, p50=10.0, p95=20.0)
MADE = {
    "green": True,
    "tests": 12,
    "base_tests": 10,
    "attempts": 1,
    "tasks": 1,
    "missing": 0,
    "high": 0,
    "medium": 0,
    "low": 0,
    "reviewed": "other",
    "unknown": False,
}
REQUEST = {"project": "shop", "commit": "c1", "build": "build-shop-1", "by": "ada", "made": MADE}
QUICK = WatchPolicy(seconds=3, window=1, min_asked=100)
REPORT = GateReport(green=True, reason="3 tests passed", ran=3, log="log", report="", seconds=0.1)


@dataclass
class Production:
    """What a look from outside finds: each site's live release, and the units that run."""

    live: dict[str, int] = field(default_factory=lambda: {"production": 6, "staging": 5})
    units: set[tuple[str, int]] = field(default_factory=lambda: {("production", 6), ("production", 5), ("staging", 5)})

    def seen(self) -> tuple[dict[str, int], frozenset[tuple[str, int]]]:
        """For comparing before with after."""
        return dict(self.live), frozenset(self.units)


@dataclass
class Outside:
    """What the activities did, in order, and how they behave; a scenario replaces what it is about. ``before`` is
    called with every activity's name first: it may raise, or wait."""

    delivery: Delivery = field(
        default_factory=lambda: Delivery(target="local", run=("serve",), integration=("test",), watch=QUICK)
    )
    consent: Consent = field(default_factory=lambda: Consent(approve=()))
    production: Production = field(default_factory=Production)
    before: Callable[[str, Any], None] = lambda name, request: None
    held: str = ""
    sets_up: bool = False
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    integration: Callable[[RunIntegrationInput], GateReport] = lambda _: REPORT
    window: Callable[[LoadOrder], Window] = lambda o: Window(number=o.number, seconds=1, candidate=GOOD, baseline=GOOD)
    touched: Touched = field(default_factory=lambda: Touched(files=2, lines=20, novel=0, paths=("shop.py",)))
    step: Callable[[RunStepInput], StepReport] = lambda _: StepReport(green=True, sentence="done")
    restored: Callable[[CompensateInput], bool] = lambda _: True
    joined: Callable[[JoinLaneInput], dict[str, Any]] = lambda _: {"granted": True}
    number: int = 7
    client: Client | None = None
    done: list[tuple[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    past: list[Release] = field(default_factory=list)

    def of(self, name: str) -> list[Any]:
        """The requests of one activity, in order."""
        return [request for done, request in self.done if done == name]

    def names(self) -> list[str]:
        """The activities in their order, without those that only write."""
        return [name for name, _ in self.done if name not in ("register_undo", "close_undo", "pack")]

    def kinds(self) -> list[str]:
        """The kinds of the recorded events, in order."""
        return [event.kind for event in self.events]

    def event(self, kind: str) -> dict[str, Any]:
        """The data of the last event of a kind."""
        return dict(next(event.data for event in reversed(self.events) if event.kind == kind))

    def activities(self) -> list[Callable[..., Any]]:
        """All of them, for one worker."""
        return [getattr(self, name) for name in dir(self) if name.startswith("do_")]

    async def _did(self, name: str, request: Any) -> None:
        self.done.append((name, request))
        if name == self.held:
            self.holding.set()
            while not self.hold.is_set():
                activity.heartbeat()
                await asyncio.wait([asyncio.ensure_future(self.hold.wait())], timeout=0.2)
        self.before(name, request)

    @activity.defn(name="admit_delivery")
    async def do_admit(self, request: AdmitDeliveryInput) -> AdmittedDelivery:
        await self._did("admit_delivery", request)
        return AdmittedDelivery(
            project="shop",
            delivery=self.delivery,
            consent=self.consent,
            heartbeat=2.0,
            test_seconds=5.0,
            sets_up=self.sets_up,
        )

    @activity.defn(name="prepare_environment")
    async def do_prepare(self, request: PrepareInput) -> Prepared:
        await self._did("prepare_environment", request)
        return Prepared(key=f"env-{request.commit}")

    @activity.defn(name="pin_commit")
    async def do_pin(self, request: PinCommitInput) -> str:
        await self._did("pin_commit", request)
        return f"{request.commit}-pinned"

    @activity.defn(name="forget_build")
    async def do_forget(self, request: CompensateInput) -> bool:
        await self._did("forget_build", request)
        return True

    @activity.defn(name="assess_change")
    async def do_assess(self, request: AssessInput) -> Assessed:
        await self._did("assess_change", request)
        return Assessed(touched=self.touched, base=request.old)

    @activity.defn(name="open_release")
    async def do_open(self, request: OpenReleaseInput) -> int:
        await self._did("open_release", request)
        return self.number

    @activity.defn(name="record_release")
    async def do_record(self, request: RecordReleaseInput) -> None:
        self.releases.append(request.release)

    @activity.defn(name="find_release")
    async def do_find(self, request: FindReleaseInput) -> Release | None:
        await self._did("find_release", request)
        return next((r for r in self.past if r.number == request.number), None)

    @activity.defn(name="count_past")
    async def do_past(self, request: CountPastInput) -> Past:
        await self._did("count_past", request)
        return Past(releases=6, failed=0)

    @activity.defn(name="join_lane")
    async def do_join(self, request: JoinLaneInput) -> None:
        await self._did("join_lane", request)
        assert self.client is not None
        if word := self.joined(request):
            await self.client.get_workflow_handle(request.saga).signal("lane", word)

    @activity.defn(name="look_at_holder")
    async def do_look(self, request: LookInput) -> str:
        await self._did("look_at_holder", request)
        return RUNNING

    @activity.defn(name="snapshot_site")
    async def do_snapshot(self, request: SiteInput) -> Snapshot:
        await self._did("snapshot_site", request)
        live = self.production.live[request.environment]
        return Snapshot(release=live, artifact=f"a{live}", config="cfg", url="http://127.0.0.1:1")

    @activity.defn(name="build_artifact")
    async def do_build(self, request: BuildArtifactInput) -> BuiltArtifact:
        await self._did("build_artifact", request)
        return BuiltArtifact(artifact="a7", size=10, files=2, log="log", seconds=0.1)

    @activity.defn(name="start_unit")
    async def do_start(self, request: UnitInput) -> StartedUnit:
        self.production.units.add((request.environment, request.release))
        await self._did("start_unit", request)
        return StartedUnit(url=f"http://127.0.0.1:{request.release}", config="cfg", seconds=0.1)

    @activity.defn(name="find_unit")
    async def do_find_unit(self, request: UnitInput) -> str:
        await self._did("find_unit", request)
        return f"http://127.0.0.1:{request.release}"

    @activity.defn(name="switch_traffic")
    async def do_switch(self, request: SwitchInput) -> Snapshot:
        await self._did(f"switch_{request.environment}", request)
        self.production.live[request.environment] = request.to
        return Snapshot(release=request.to, artifact="a7", config="cfg", url="http://127.0.0.1:1")

    @activity.defn(name="prove_live")
    async def do_prove(self, request: UnitInput) -> Proof:
        await self._did("prove_live", request)
        live = self.production.live[request.environment]
        return Proof(ok=live == request.release, release=live, status=200)

    @activity.defn(name="restore_traffic")
    async def do_restore(self, request: CompensateInput) -> bool:
        await self._did(f"restore_{request.environment}", request)
        if self.restored(request):
            self.production.live[request.environment] = request.to
            return True
        return False

    @activity.defn(name="retire_unit")
    async def do_retire(self, request: CompensateInput) -> bool:
        await self._did("retire_unit", request)
        self.production.units.discard((request.environment, request.release))
        return True

    @activity.defn(name="run_step")
    async def do_step(self, request: RunStepInput) -> StepReport:
        await self._did("run_step", request)
        return self.step(request)

    @activity.defn(name="undo_step")
    async def do_undo_step(self, request: CompensateInput) -> bool:
        await self._did("undo_step", request)
        return True

    @activity.defn(name="prune_units")
    async def do_prune(self, request: PruneInput) -> tuple[int, ...]:
        await self._did("prune_units", request)
        return ()

    @activity.defn(name="run_integration")
    async def do_integrate(self, request: RunIntegrationInput) -> GateReport:
        await self._did("run_integration", request)
        return self.integration(request)

    @activity.defn(name="measure_window")
    async def do_measure(self, request: LoadOrder) -> Window:
        await self._did("measure_window", request)
        return self.window(request)

    @activity.defn(name="pack")
    async def do_pack(self, request: PackInput) -> Packed:
        self.done.append(("pack", request))
        return Packed(digest=uuid.uuid5(uuid.NAMESPACE_OID, repr(request)).hex * 2)

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


@asynccontextmanager
async def delivering(
    client: Client, outside: Outside, *, interceptors: Sequence[Interceptor] = ()
) -> AsyncIterator[str]:
    """Workers for one delivery; yields their task queue."""
    queue, outside.client = uuid.uuid4().hex, client
    activities = outside.activities()
    async with (
        Worker(
            client,
            task_queue=queue,
            workflows=[DeliverySaga, KpiWatch],
            activities=activities,
            interceptors=interceptors,
        ),
        Worker(client, task_queue=f"{queue}-workspace", activities=activities),
        Worker(client, task_queue=f"{queue}-sandbox", activities=activities),
        Worker(client, task_queue=f"{queue}-deploy", activities=activities),
    ):
        yield queue


async def begin(client: Client, queue: str, request: Any = None, *, name: str = "") -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        "DeliverySaga",
        REQUEST if request is None else request,
        id=name or f"deliver-shop-{uuid.uuid4().hex}",
        task_queue=queue,
    )


PRODUCTION_BEFORE = Production().seen()
