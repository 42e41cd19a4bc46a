"""One build while it runs: its name, what it carries, and the tools that every phase uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio import workflow
from temporalio.workflow import ChildWorkflowHandle

from workflows.compensation import Compensations
from workflows.people.attributes import Attributes
from workflows.people.desk import Desk, details
from workflows.policies import STORE, WORKSPACE, Effects
from workflows.recorder import Recorder
from workflows.state import BuildState, Head

with workflow.unsafe.imports_passed_through():
    from activities.accounts.money import Money, SpentInput
    from activities.packets import Packed, Packets, PackInput
    from activities.planning import TaskBrief
    from domain.build.requests import BuildRequest, TaskOutcome
    from domain.errors import PhaseMissing
    from domain.flow.board import shown
    from domain.human.asks import Answer, Ask
    from domain.human.raising import Raised, raised
    from domain.money.budget import Budget, Payer, Spent

if TYPE_CHECKING:
    from activities.intake import AdmittedBuild

T = TypeVar("T")
LONGEST_TIMELINE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An ask before it has a digest: ``document`` is what its packet says beside the build's own figures."""

    about: str
    sentence: str
    choices: tuple[str, ...]
    document: dict[str, Any]
    task: str = ""


class Build:
    """The context that phases are given; they change ``state`` and nothing else of it."""

    def __init__(self, *, name: str, state: BuildState) -> None:
        self.name = name
        self.request = BuildRequest(spec="")
        self.state = state
        self.briefs: tuple[TaskBrief, ...] = ()
        self.renew: Callable[[], Awaitable[None]] = _never
        self.children: dict[str, ChildWorkflowHandle[Any, TaskOutcome]] = {}
        self.effects = Effects()
        self.effects.paused = state.paused
        self.recorder = Recorder(build=name)
        self.attributes = Attributes()
        # Of this run alone, and in no snapshot: what is measured must not make two equal states differ.
        self.timeline: list[tuple[str, int]] = []
        self.spent_micros = 0
        self.undo = Compensations(effects=self.effects, build=name, undo=state.undo)
        self.desk = Desk(book=state.book, recorder=self.recorder, effects=self.effects)

    @property
    def admitted(self) -> AdmittedBuild:
        """What intake admitted."""
        return _there(self.state.admitted)

    @property
    def base(self) -> Head:
        """The pinned commit that the build started from."""
        return _there(self.state.base)

    @property
    def head(self) -> Head:
        """Where the build stands now."""
        return _there(self.state.head)

    @property
    def full(self) -> bool:
        """Whether the history is long enough to go on in a new run."""
        info = workflow.info()
        limit = self.state.admitted.limits.history_events if self.state.admitted else 0
        return info.is_continue_as_new_suggested() or 0 < limit < info.get_current_history_length()

    @property
    def budget(self) -> Budget:
        """The limits of its own calls: what was spent before its snapshot counts as spent."""
        budget, carried = self.admitted.budget, self.state.carried_micros
        return replace(budget, build=max(0, budget.build - carried)) if budget.build is not None else budget

    def payer(self, *, phase: str, role: str, task: str = "") -> Payer:
        """Whom a call of this build is charged to."""
        user = self.request.user or "unknown"
        return Payer(project=self.admitted.project, build=self.name, task=task, user=user, phase=phase, role=role)

    def raise_limits(self, asked: Raised) -> None:
        """Use the limits that a person gave from now on; nothing is lowered."""
        admitted = self.admitted
        limits = replace(admitted.limits, attempts=asked.attempts or admitted.limits.attempts)
        self.state.admitted = replace(admitted, limits=limits, budget=raised(admitted.budget, asked))

    async def enter(self, phase: str) -> None:
        """A new phase shows at once in the log, so that a person sees what goes on."""
        self.recorder.note("build.phase", phase=phase)
        self.attributes.tell(BuildPhase=phase)
        entered = (phase, int(workflow.now().timestamp() * 1000))
        self.timeline = [*self.timeline, entered][-LONGEST_TIMELINE:]
        workflow.set_current_details(self.standing(phase))
        await self.recorder.flush(self.effects)

    def introduce(self) -> None:
        """What Temporal's lists can be asked for from the beginning."""
        admitted, carried = self.admitted, self.state.carried_micros
        self.effects.fair_to(admitted.project)
        self.attributes.tell(
            ProjectId=admitted.project,
            Repo=admitted.repository or admitted.project,
            SpecHash=admitted.spec[:16],
            BuildStatus="running",
            CostUsd=carried / 1_000_000,
            NeedsApproval=False,
            **({"Tags": list(self.request.tags)} if self.request.tags else {}),
        )

    def standing(self, phase: str) -> str:
        """What Temporal's UI shows while it works: where it is, and what can be said to it."""
        tasks = "".join(f"* {line}\n" for line in shown(self.state.tasks))
        commands = ("watch", "trace", "cost", "pause", "abort")
        return "\n\n".join(
            (f"phase: **{phase}**", tasks, " · ".join(f"`mendwork {each} {self.name}`" for each in commands))
        )

    async def spent(self, *, task: str = "") -> Spent:
        """The build's money so far, or one task's."""
        spent: Spent = await self.effects.run(STORE, Money.count_spent, SpentInput(build=self.name, task=task))
        if not task:
            self.spent_micros = spent.lasting + self.state.carried_micros
            self.attributes.tell(CostUsd=self.spent_micros / 1_000_000)
        return spent

    async def pack(self, document: dict[str, Any], *, base: str = "", commit: str = "") -> Packed:
        """Store what a person decides about."""
        pack = PackInput(project=self.admitted.project, document=document, base=base, commit=commit)
        return await self.effects.run(WORKSPACE, Packets.pack, pack)

    async def question(self, wanted: Wanted) -> Answer:
        """Ask a person what to do; unattended, or unanswered in time, it is skipped."""
        if self.request.unattended:
            return Answer(choice="skip", by="nobody: unattended")
        answer = await self.decide(wanted, seconds=self.admitted.consent.question_seconds)
        return answer if answer.choice != "expired" else Answer(choice="skip", by="nobody: not answered in time")

    async def decide(self, wanted: Wanted, *, seconds: float, digest: str = "") -> Answer:
        """Ask, or go on waiting for what was asked in an earlier run. ``digest`` is that of a packet that is there."""
        slot = f"{wanted.about}:{wanted.task}"
        ask = self.state.asked.get(slot)
        if ask is None:
            ask = await self._asking(wanted, seconds=seconds, digest=digest)
            self.state.asked[slot] = ask
        workflow.set_current_details(details(self.name, ask))
        self.attributes.tell(NeedsApproval=True)
        while (answer := await self.desk.ask(ask, unless=lambda: self.full and not wanted.task)) is None:
            await self.renew()
        self.state.asked.pop(slot, None)
        workflow.set_current_details(self.standing(self.state.phase))
        self.attributes.tell(NeedsApproval=bool(self.state.asked))
        return answer

    async def _asking(self, wanted: Wanted, *, seconds: float, digest: str) -> Ask:
        self.state.asks += 1
        name = f"{wanted.about}-{self.state.asks}"
        if not digest:
            head = {"ask": name, "about": wanted.about, "build": self.name, "sentence": wanted.sentence}
            digest = (await self.pack({**head, "choices": list(wanted.choices), **wanted.document})).digest
        now = int(workflow.now().timestamp() * 1000)
        return Ask(
            id=name,
            about=wanted.about,
            digest=digest,
            sentence=wanted.sentence[:500],
            choices=wanted.choices,
            opened=now,
            deadline=now + int(seconds * 1000),
            task=wanted.task,
        )


async def _never() -> None:
    """Nothing is under way before ``run`` starts."""


def _there(value: T | None) -> T:
    """What intake set: the first phase of every build."""
    if value is None:
        raise PhaseMissing("this phase needs what intake sets, and intake has not run")
    return value
