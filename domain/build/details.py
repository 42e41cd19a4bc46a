"""One build in full, as a fold of its events: what ``status``, ``show`` and ``watch`` print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.ports.store import Event
from domain.trace.asks import opened
from domain.trace.calls import call_of, faults_in
from domain.trace.delivery.told import FAMILIES, fold_delivery, is_alone, title_of
from domain.trace.order import in_order, key_of, place_of, undone
from domain.trace.parts import AttemptDetails, BuildDetails, MergedDetails, TaskDetails
from domain.trace.rebuilding import Key
from domain.trace.spending import CALLS, Spending, logical_call, spending_of


class DetailsFold:
    """Folds events as they come, at a cost that does not grow with those before; late ones make it fold anew."""

    def __init__(self, build: str) -> None:
        self._events: dict[Key, Event] = {}
        self._runs: dict[str, set[str]] = {}
        self._begin(build)

    def add(self, events: Iterable[Event]) -> BuildDetails:
        """What is known with these too: the same for any order of arrival and any number of repeats."""
        new = in_order(event for event in events if key_of(event) not in self._events)
        anew = any(self._is_late(event) for event in new)
        for event in new:
            self._events[key_of(event)] = event
            self._runs.setdefault(event.first_run, set()).add(event.run)
        lost = frozenset[Key]()
        if anew:
            self._begin(self.details.build)
            new = in_order(self._events.values())
            lost = undone(new)
        for event in new:
            self._apply(event, counts=key_of(event) not in lost)
        return self.details

    def _is_late(self, event: Event) -> bool:
        """It comes before one that was folded, or in a new run of its saga, which may be a reset."""
        runs = self._runs.get(event.first_run, {event.first_run})
        return place_of(event) < self._last or event.run not in runs

    def _begin(self, build: str) -> None:
        self.details = BuildDetails(build=build)
        self._paid: set[tuple[object, ...]] = set()
        self._last = (-1, False, "", 0)

    def _apply(self, event: Event, *, counts: bool) -> None:
        self._last = place_of(event)
        if event.kind in CALLS and logical_call(event) not in self._paid:
            self._paid.add(logical_call(event))
            self.details.spent += spending_of(event)
        if counts:
            _fold(self.details, event)


def fold_details(build: str, events: Iterable[Event]) -> BuildDetails:
    """The same for any order of arrival and any number of repeats."""
    return DetailsFold(build).add(events)


def _fold(details: BuildDetails, event: Event) -> None:
    if event.kind.partition(".")[0] in FAMILIES:
        _delivery(details, event)
    elif event.kind in CALLS:
        _call(details, event)
    elif event.kind.startswith("ask.") or event.kind == "money.warned":
        _asks(details, event)
    elif event.kind == "gates.ran" and not event.attempt:
        _merged_gates(details.task(event.task).merge if event.task else details.landing, event)
    elif event.task and event.attempt and event.kind in ATTEMPT_KINDS:
        _attempt(details.task(event.task), event)
    elif event.task:
        _task(details.task(event.task), event)
        details.head = event.data["commit"] if event.kind == "task.merged" else details.head
    else:
        _build(details, event)


def _build(details: BuildDetails, event: Event) -> None:
    data = event.data
    match event.kind:
        case "build.started" | "build.admitted":
            details.project = data["project"]
            details.title = data.get("title", details.title)
            details.user = data.get("user", details.user)
            details.started = event.at if event.kind == "build.started" else details.started
        case "build.phase":
            details.phase, details.status, details.ended = data["phase"], "running", 0
        case "build.restored":
            _restored(details, event)
        case "build.base":
            details.base, details.base_log = data["commit"], data["log"]
            details.head = details.base
        case "build.planned":
            _planned(details, event)
        case "build.paused" | "build.resumed":
            details.paused = event.kind == "build.paused"
        case "limits.raised":
            details.raised |= {name: value for name, value in data.items() if name != "by" and value}
        case "review.ended":
            details.reviews.append(dict(data))
        case "target.forwarded":
            details.target = data["new"]
        case "merge.tried":
            details.landing = _tried(event)
        case "build.ended":
            _ended(details, event)


def _delivery(details: BuildDetails, event: Event) -> None:
    """A delivery that runs alone is the whole case; one of a build says nothing of how the build ends."""
    fold_delivery(details.delivery, event)
    told = details.delivery
    details.alone = details.alone or not details.started  # a build is started before anything of it is delivered
    if not details.alone:
        return
    details.started = details.started or event.at
    if is_alone(event):
        details.project, details.title, details.commit = told.project, title_of(event), told.commit
    elif event.kind == "delivery.ended":
        details.status, details.sentence, details.ended = told.status, told.sentence, event.at
    elif event.kind == "delivery.phase":
        details.phase, details.status, details.ended = told.phase, "running", 0


def _planned(details: BuildDetails, event: Event) -> None:
    """A newer plan begins every task of it anew; what an earlier one had beside them is replaced."""
    details.plan = event.data["plan"]
    planned = {raw["id"]: raw for raw in event.data["tasks"]}
    for name, task in details.tasks.items():
        task.status = task.status if name in planned else "replaced"
    for name, raw in planned.items():
        task = details.task(name)
        task.title, task.depends_on = raw["title"], tuple(raw.get("depends_on", ()))
        task.status, task.sentence, task.why = "waiting", "", ""


def _restored(details: BuildDetails, event: Event) -> None:
    """What another build had done by its snapshot; ``head`` is where this one stands before it does anything."""
    data = event.data
    details.parent, details.base, details.plan = data["token"], data["base"], data.get("plan", "")
    details.head = data["head"]
    details.carried = Spending(calls=int(data.get("calls") or 0), cost_micros=int(data.get("spent") or 0))
    for raw in data.get("tasks", ()):
        task = details.task(raw["id"])
        task.title, task.status, task.commit = raw.get("title", ""), raw["status"], raw.get("commit", "")


def _ended(details: BuildDetails, event: Event) -> None:
    data = event.data
    details.status, details.sentence, details.ended = data["status"], data["sentence"], event.at
    details.fault = data.get("fault", "")
    details.branch, details.commit = data.get("branch", ""), data.get("commit", "")
    details.head = details.commit or details.head
    details.diff = data.get("diff", "")
    details.missing = list(data.get("missing", ()))


def _asks(details: BuildDetails, event: Event) -> None:
    data = event.data
    match event.kind:
        case "ask.opened":
            details.asks[data["id"]] = opened(event)
        case "ask.closed" if data["id"] in details.asks:
            ask = details.asks[data["id"]]
            said = {"choice": data["choice"], "by": data.get("by", ""), "reason": data.get("reason", "")}
            details.asks[ask.id] = replace(ask, closed=event.at, **said)
            if ask.saga or details.alone:
                fold_delivery(details.delivery, event)
        case "money.warned":
            details.warnings.append(data["sentence"])


def _task(task: TaskDetails, event: Event) -> None:
    data = event.data
    match event.kind:
        case "task.started":
            task.status, task.sentence = "running", ""
        case "task.ended":
            task.status = "written" if data["status"] == "green" else data["status"]
            task.commit, task.sentence = data.get("commit", ""), data.get("sentence", "")
        case "merge.tried":
            task.merge = _tried(event)
        case "build.taken":
            task.taken = data["commit"]
        case "task.merged":
            task.status, task.commit, task.why, task.sentence = "merged", data["commit"], "", ""
        case "task.sent_back":
            task.status, task.sent_back = "waiting", data["times"]
            task.why, task.sentence = data["why"], data["sentence"]
        case "task.stuck" | "task.skipped":
            task.status, task.sentence = event.kind.removeprefix("task."), data.get("sentence", "")
        case "task.blocked":
            task.status, task.sentence = "blocked", f"it depends on {data['by']}"


ATTEMPT_KINDS = ("attempt.started", "attempt.phase", "change.applied", "change.refused", "gates.ran")


def _attempt(task: TaskDetails, event: Event) -> None:
    data = event.data
    attempt = task.attempt(event.attempt)
    match event.kind:
        case "attempt.started":  # again, when a reset went back behind the first time
            task.attempts[event.attempt - 1] = AttemptDetails(number=event.attempt)
        case "attempt.phase" if not attempt.green:
            attempt.phase = data["phase"]
        case "change.applied":
            attempt.commit, attempt.diff = data["commit"], data["diff"]
        case "change.refused":
            attempt.reason, attempt.phase = data["reason"], "refused"
        case "gates.ran":
            attempt.green, attempt.reason, attempt.ran = data["green"], data["reason"], data["ran"]
            attempt.log, attempt.report = data["log"], data["report"]
            attempt.phase = "green" if attempt.green else "red"


def _tried(event: Event) -> MergedDetails:
    data = event.data
    return MergedDetails(
        onto=data["onto"],
        commit=data.get("commit", ""),
        conflicts=list(data.get("conflicts", ())),
        diff=data.get("diff", ""),
        report=data.get("report", ""),
    )


def _merged_gates(merged: MergedDetails, event: Event) -> None:
    data = event.data
    merged.green, merged.reason, merged.ran = data["green"], data["reason"], data["ran"]
    merged.log, merged.report = data["log"], data["report"]


def _call(details: BuildDetails, event: Event) -> None:
    owner = details.task(event.task).attempt(event.attempt) if event.task else details
    owner.faults.extend(faults_in(event))
    owner.calls.append(call_of(event))
    if isinstance(owner, AttemptDetails) and event.kind == "call.answered":
        data = event.data
        owner.model, owner.prompt, owner.answer = data["model"], data["prompt"], data["answer"]
