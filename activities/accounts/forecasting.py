"""What a planned build would take, and what would run where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.planning import TaskBrief
from domain.errors import EventUnreadable
from domain.money.amounts import Amount, Priced, Range, price_of, priced_as
from domain.money.forecast import LISTED, Forecast, Guess, Past, TaskForecast, Work, estimate, together
from domain.ports.store import BuildRow, CallTry, Event, Store

MOST_BUILDS = 20
LOOKED_AT = 200
"""How many of the project's newest builds are looked at for MOST_BUILDS that ended with tasks."""

__all__ = ["Forecast", "ForecastInput", "Forecasting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastInput:
    """The plan's tasks, and what the configuration grants them. ``prompt_tokens`` are the plan prompt's (0: as the
    planner's call was billed), ``coding`` and ``validation`` the chains of models that write and review (without the
    latter, the former review)."""

    project: str
    build: str
    tasks: tuple[TaskBrief, ...]
    attempts: int
    review: bool
    approve: tuple[str, ...]
    delivers: bool
    coding: tuple[str, ...]
    output_tokens: int
    prompt_tokens: int
    validation: tuple[str, ...] = ()


class Forecasting:
    """Runs where the store is. ``queue`` is the task queues' prefix, ``engine`` what the sandbox is."""

    def __init__(self, *, store: Store, queue: str, engine: str) -> None:
        self._store = store
        self._queue = queue
        self._engine = engine

    @activity.defn
    async def forecast_build(self, request: ForecastInput) -> Forecast:
        """From the project's last ended builds, or a stated guess. Calls no model, touches nothing.

        Raises StoreUnavailable.
        """
        own = await self._store.calls.tries(request.build)
        past = await self._past(request, own)
        prompt = request.prompt_tokens or _planned_with(own)
        guess = Guess(attempts=request.attempts, prompt_tokens=prompt, output_tokens=request.output_tokens)
        known = estimate(past, guess)
        model = request.coding[0] if request.coding else ""
        reviewer = (request.validation or request.coding or ("",))[0]
        work = [Work(id=t.id, title=t.title, depends_on=t.depends_on, model=model) for t in request.tasks]
        each = priced_as(known.task, price_of(past.priced, model))
        totals = together(work, {model: each})
        if request.review:
            totals += priced_as(known.review, price_of(past.priced, reviewer))
        return Forecast(
            basis=known.basis,
            tasks=tuple(self._listed(task, each) for task in work[:LISTED]),
            more=max(len(work) - LISTED, 0),
            totals=totals,
            after=self._after(request, reviewer),
            notes=_notes(totals, [model, *([reviewer] if request.review else [])], past),
        )

    def _listed(self, task: Work, each: Range) -> TaskForecast:
        return TaskForecast(
            id=task.id,
            title=task.title,
            model=task.model,
            asks=f"{self._queue}-model",
            engine=self._engine,
            tests=f"{self._queue}-sandbox",
            expected=each.expected,
        )

    def _after(self, request: ForecastInput, reviewer: str) -> tuple[str, ...]:
        steps = [f"plan: a person is asked (queue {self._queue})"] if "plan" in request.approve else []
        steps.append(f"merges: on {self._queue}-workspace, tested in {self._engine} on {self._queue}-sandbox")
        if request.review:
            steps.append(f"review: {reviewer} on {self._queue}-model")
        if "change" in request.approve:
            steps.append(f"change: a person is asked (queue {self._queue})")
        steps.append(f"landing: a branch of the repository, on {self._queue}-workspace")
        if request.delivers:
            steps.append(f"delivery: on {self._queue}-deploy")
        return tuple(steps)

    async def _past(self, request: ForecastInput, own: Sequence[CallTry]) -> Past:
        priced = _priced(own)
        tasks: list[Amount] = []
        reviews: list[Amount] = []
        builds = 0
        for row in await self._store.builds.list(project=request.project, limit=LOOKED_AT):
            if builds == MOST_BUILDS:
                break
            tries = await self._tries(row, request.build)
            events = await self._events(row) if tries else ()
            done = _tasks(events, tries)
            if not done:
                continue
            builds += 1
            tasks += done
            reviews += _reviews(events, tries)
            priced += _priced(tries)
        return Past(builds=builds, tasks=tuple(tasks), reviews=tuple(reviews), priced=tuple(priced))

    async def _tries(self, row: BuildRow, this: str) -> Sequence[CallTry]:
        if not row.ended or row.damaged or row.build == this:
            return ()
        return await self._store.calls.tries(row.build)

    async def _events(self, row: BuildRow) -> Sequence[Event]:
        try:
            return [event for _, event in await self._store.events.read(row.build)]
        except EventUnreadable as error:
            activity.logger.warning("%s does not count in the forecast: %s", row.build, error)
            return ()


def _planned_with(own: Sequence[CallTry]) -> int:
    """Tokens of the prompt that the planner answered last."""
    seen = [each.usage.input_tokens for each in own if each.payer.phase == "plan" and each.usage is not None]
    return seen[-1] if seen else 0


def _tasks(events: Sequence[Event], tries: Sequence[CallTry]) -> list[Amount]:
    """What each task that ended took, all its sagas together."""
    seconds = _seconds(events)
    return [
        _amount([each for each in tries if each.payer.task == task], took)
        for task, took in seconds.items()
        if any(each.payer.task == task for each in tries)
    ]


def _seconds(events: Sequence[Event]) -> Mapping[str, float]:
    """How long each task ran, without what it waited between two sagas."""
    began: dict[str, int] = {}
    took: dict[str, float] = {}
    for event in sorted(events, key=lambda each: each.at):
        if event.task and event.kind == "task.started":
            began.setdefault(event.task, event.at)
        elif event.task and event.kind == "task.ended" and event.task in began:
            took[event.task] = took.get(event.task, 0.0) + (event.at - began.pop(event.task)) / 1000
    return took


def _reviews(events: Sequence[Event], tries: Sequence[CallTry]) -> list[Amount]:
    """The build's reviews together; none where there was none."""
    made = [each for each in tries if each.payer.phase == "review"]
    began, took = 0, 0.0
    for event in sorted(events, key=lambda each: each.at):
        if event.kind == "build.phase":
            began = event.at if event.data.get("phase") == "review" else 0
        elif event.kind == "review.ended" and began:
            began, took = 0, took + (event.at - began) / 1000
    return [_amount(made, took)] if made else []


def _amount(tries: Sequence[CallTry], seconds: float) -> Amount:
    used = [each.usage for each in tries if each.usage is not None]
    return Amount(
        calls=len(tries),
        input_tokens=sum(usage.input_tokens for usage in used),
        output_tokens=sum(usage.output_tokens for usage in used),
        seconds=seconds,
        cost_micros=None,
    )


def _priced(tries: Sequence[CallTry]) -> list[Priced]:
    return [
        Priced(
            model=each.model,
            input_tokens=each.usage.input_tokens,
            output_tokens=each.usage.output_tokens,
            cost_micros=each.usage.cost_micros,
        )
        for each in tries
        if each.usage is not None and each.usage.cost_micros is not None
    ]


def _notes(totals: Range, models: Sequence[str], past: Past) -> tuple[str, ...]:
    notes = ["time is that of models and tests: what people take to answer, and set-up, are not in it"]
    known = {each.model for each in past.priced}
    lacking = sorted(set(models) - known) if totals.expected.cost_micros is None else []
    if lacking:
        notes.append(f"no call of {', '.join(lacking)} has had a known price yet, so the cost is unknown")
    return tuple(notes)
