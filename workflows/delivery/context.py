"""One delivery while it runs: its name, what it found out, and the tools that every step uses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.compensation import Compensations
from workflows.people.attributes import Attributes
from workflows.people.desk import Desk, details
from workflows.policies import STORE, WORKSPACE, Effects
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    # The sandbox decodes a result's types only where their modules were imported by name inside of it.
    import domain.delivery.project
    import domain.kpi.policy
    import domain.kpi.probe
    import domain.kpi.window
    import domain.risk.evidence
    import domain.risk.policy  # noqa: F401
    from activities.delivery.admission import AdmittedDelivery
    from activities.delivery.looking import Snapshot
    from activities.delivery.releases import RecordReleaseInput, ReleaseBook
    from activities.packets import Packed, Packets, PackInput
    from activities.repository.landing import CompensateInput
    from domain.delivery.requests import DeliveryRequest
    from domain.delivery.steps import STEPS, UNDO
    from domain.errors import PhaseMissing
    from domain.human.asks import Answer, Ask
    from domain.human.book import Book
    from domain.ports.releases import OPEN, Release
    from domain.ports.target import PRODUCTION


@dataclass(slots=True, kw_only=True)
class Found:
    """What the steps found out, in their order; ``snapshot`` is what production had before.

    ``switching`` is set before traffic is touched. ``record`` is the release record's JSON.
    """

    release: int = 0
    commit: str = ""
    artifact: str = ""
    environment: str = ""
    config: str = ""
    snapshot: Snapshot = field(default_factory=Snapshot)
    live_commit: str = ""
    staging_url: str = ""
    unit_url: str = ""
    switching: bool = False
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class LaneWord:
    """What the lane said last; ``heard`` counts."""

    granted: bool = False
    refused: bool = False
    reason: str = ""
    position: int = 0
    heard: int = 0


class Delivering:
    """The context that steps are given; they change ``found``. What others say to the saga lies in ``lane``,
    ``undecided`` (the watch cannot tell) and ``wanted_back`` (who wants a rollback now)."""

    def __init__(self, *, name: str, case: str) -> None:
        self.name = name
        self.case = case
        self.request = DeliveryRequest(project="")
        self.found = Found()
        self.phase = "admit"
        self.effects = Effects()
        self.recorder = Recorder(build=case)
        self.undo = Compensations(effects=self.effects, build=name, undo=[])
        self.desk = Desk(book=Book(), recorder=self.recorder, effects=self.effects, saga=name)
        self.lane = LaneWord()
        self.attributes = Attributes()
        self.undecided: dict[str, Any] = {}
        self.wanted_back = ""
        self._admitted: AdmittedDelivery | None = None
        self._asks = 0
        self._revision = 0
        self._entered = 0.0
        self._started = 0

    @property
    def admitted(self) -> AdmittedDelivery:
        """What the configuration says."""
        if self._admitted is None:
            raise PhaseMissing("a delivery needs what its admission sets")
        return self._admitted

    def admit(self, admitted: AdmittedDelivery) -> None:
        """Set once, by the first step."""
        self._admitted = admitted
        self.attributes.tell(ProjectId=admitted.project, BuildStatus="running", NeedsApproval=False)
        self.effects.beat_every(timedelta(seconds=admitted.heartbeat))
        self.effects.fair_to(admitted.project)

    async def enter(self, phase: str) -> None:
        """A new phase shows at once in the log, and the last one's seconds go into the record."""
        now = workflow.now().timestamp()
        if self._entered:
            timings = self.found.record.setdefault("timings", {})
            timings[self.phase] = round(timings.get(self.phase, 0.0) + now - self._entered, 3)
        self._entered, self.phase = now, phase
        self.recorder.note("delivery.phase", phase=phase)
        self.attributes.tell(BuildPhase=phase)
        workflow.set_current_details(f"phase: **{phase}**")
        await self.recorder.flush(self.effects)

    async def undoing(self, step: str, *, environment: str, to: int = 0, name: str = "") -> None:
        """Register how to undo ``step`` before it acts; ``name`` is that of a step of the project's own."""
        action = UNDO[step] if step in STEPS else "undo_step"
        request = CompensateInput(
            project=self.admitted.project,
            build=self.name,
            environment=environment,
            release=self.found.release,
            to=to,
            step=name,
        )
        await self.undo.register(f"{step}-{environment}{f'-{name}' if name else ''}", action, request)

    async def hear_lane(self, seconds: float, *, after: int) -> None:
        """Wait for a word of the lane's beyond the ``after``-th: it may have come already."""
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: self.lane.heard > after, timeout=timedelta(seconds=seconds))
        self.effects.heed_cancellation()

    async def write(self, status: str = OPEN, sentence: str = "") -> None:
        """The release record as it is now."""
        self._revision += 1
        now = int(workflow.now().timestamp() * 1000)
        self._started = self._started or now
        found = self.found
        release = Release(
            project=self.admitted.project,
            number=found.release,
            saga=self.name,
            revision=self._revision,
            kind=self.request.kind,
            status=status,
            commit=found.commit,
            build=self.request.build,
            artifact=found.artifact,
            config=found.config,
            previous=found.snapshot.release,
            started=self._started,
            ended=0 if status == OPEN else now,
            sentence=sentence[:1_000],
            record=found.record,
        )
        record = RecordReleaseInput(release=release)
        await self.effects.last(STORE, ReleaseBook.record_release, record, heed=False)

    def go_on_from(self, revision: int) -> None:
        """The record's revision so far: a delivery that was reset writes on, never again."""
        self._revision = revision

    async def pack(self, document: Mapping[str, Any], *, base: str = "", commit: str = "") -> Packed:
        """Store what a person decides about."""
        pack = PackInput(project=self.admitted.project, document=document, base=base, commit=commit)
        return await self.effects.run(WORKSPACE, Packets.pack, pack)

    def asking(self, about: str, sentence: str, choices: tuple[str, ...], digest: str) -> Ask:
        """An ask that is not open yet, with the project's time for approvals."""
        self._asks += 1
        now = int(workflow.now().timestamp() * 1000)
        ask = Ask(
            id=f"{about}-{self._asks}",
            about=about,
            digest=digest,
            sentence=sentence[:500],
            choices=choices,
            opened=now,
            deadline=now + int(self.admitted.consent.approval_seconds * 1000),
        )
        workflow.set_current_details(details(self.name, ask))
        self.attributes.tell(NeedsApproval=True)
        return ask

    def approved(self, what: str, answer: Answer, digest: str, how_: str) -> None:
        """Keep who approved what, for the record."""
        at = int(workflow.now().timestamp() * 1000)
        entry = {"what": what, "digest": digest, "by": answer.by, "how": how_, "at": at}
        self.found.record.setdefault("approved", []).append(entry)

    def site(self) -> dict[str, str]:
        """Production, as inputs of activities name it."""
        return {"project": self.admitted.project, "environment": PRODUCTION}


def row(value: Any) -> dict[str, Any]:
    """A result as a row of the log has it."""
    return asdict(value)
