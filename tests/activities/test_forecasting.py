"""A forecast reads the project's ended builds, and says what it has read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.accounts.forecasting import Forecasting, ForecastInput
from activities.planning import TaskBrief
from adapters.store import open_store
from domain.money.budget import Budget, Payer
from domain.money.forecast import LISTED, Forecast
from domain.money.usage import Price, Usage
from domain.ports.language_model import CallKey
from domain.ports.store import BegunCall, Event, FailedCall, RecordedCall, Store

NOON = 1_795_176_000_000
FREE = Budget(task=None, build=None, day=None, calls=10_000)
PRICE = Price(input_micros_per_million=1_000_000, output_micros_per_million=4_000_000)
ASKED = ForecastInput(
    project="a",
    build="build-a-99",
    tasks=(TaskBrief(id="one", title="One", depends_on=()), TaskBrief(id="two", title="Two", depends_on=("one",))),
    attempts=3,
    review=False,
    approve=("change",),
    delivers=False,
    coding=("fast", "slow"),
    output_tokens=16_000,
    prompt_tokens=1_500,
)


@dataclass(frozen=True, slots=True)
class Desk:
    """A store with a past, and the activity on it."""

    store: Store

    async def forecast(self, **changed: object) -> Forecast:
        forecasting = Forecasting(store=self.store, queue="mendwork", engine="bubblewrap")
        asked = replace(ASKED, **changed)  # type: ignore[arg-type]
        told: Forecast = await ActivityEnvironment().run(forecasting.forecast_build, asked)
        return told

    async def called(
        self, build: str, *, task: str = "one", phase: str = "tasks", number: int = 1, tokens: tuple[int, int] | None
    ) -> None:
        """A call of ``build`` that was answered and billed; None is one that was lost."""
        payer = Payer(project="a", build=build, task=task, user="ada", phase=phase, role="coding")
        key = CallKey(saga=f"{build}-task-{task}" if task else build, step=phase, attempt=number)
        call = BegunCall(request=f"r{number}", model="fast", payer=payer, at=NOON, budget=FREE)
        begun = await self.store.calls.begin(key, call)
        outcome: RecordedCall | FailedCall = FailedCall(fault="ProviderUnavailable")
        if tokens is not None:
            cost = PRICE.cost(input_tokens=tokens[0], output_tokens=tokens[1])
            usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1], cost_micros=cost)
            outcome = RecordedCall(request=f"r{number}", model="fast", answer="a", value="v", problems=(), usage=usage)
        await self.store.calls.end(key, begun, outcome=outcome)

    async def ended(self, number: int, *, tasks: dict[str, float], over: bool = True, project: str = "a") -> str:
        """A build whose tasks took so many seconds."""
        build = f"build-{project}-{number}"
        rows: list[tuple[str, str, int, dict[str, Any]]] = [
            ("build.started", "", NOON + number, {"project": project, "title": "x"})
        ]
        for task, seconds in tasks.items():
            rows.append(("task.started", task, NOON + number, {"base": "b", "first": 1}))
            ended = NOON + number + round(seconds * 1000)
            rows.append(("task.ended", task, ended, {"status": "green", "commit": "c"}))
        if over:
            rows.append(("build.ended", "", NOON + number + 10**6, {"status": "succeeded", "sentence": "done"}))
        events = [
            Event(first_run=build, run=build, sequence=n, build=build, kind=kind, at=at, task=task, data=data)
            for n, (kind, task, at, data) in enumerate(rows, start=1)
        ]
        await self.store.events.append(events)
        return build


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with await open_store("memory:") as store:
        yield Desk(store)


async def test_without_a_past_it_is_a_guess_that_says_so_and_knows_no_price(at: Desk) -> None:
    told = await at.forecast()
    assert told.basis.startswith("a guess: no build of this project has ended yet: 2 calls a task, 3000 tokens in")
    assert told.totals.expected.calls == 4
    assert told.totals.expected.cost_micros is None
    assert any("no call of fast has had a known price" in note for note in told.notes)


async def test_the_planning_call_of_the_build_itself_tells_a_price_and_the_size_of_a_prompt(at: Desk) -> None:
    await at.called("build-a-99", task="", phase="plan", tokens=(2_000, 500))
    told = await at.forecast(prompt_tokens=0)
    assert "4000 tokens in" in told.basis
    assert told.totals.expected.input_tokens == 2 * 2 * 4_000
    assert told.totals.expected.cost_micros is not None


async def test_the_past_is_the_median_of_the_tasks_that_ended(at: Desk) -> None:
    for number, (tokens, seconds) in enumerate([(1_000, 10.0), (2_000, 20.0), (9_000, 30.0)], start=1):
        build = await at.ended(number, tasks={"one": seconds})
        await at.called(build, tokens=(tokens, 100 * number**2))
    told = await at.forecast()
    assert told.basis.startswith("history of this project: 3 builds, 3 tasks")
    assert (told.tasks[0].expected.calls, told.tasks[0].expected.input_tokens) == (1, 2_000)
    assert told.tasks[0].expected.seconds == 20.0
    assert told.totals.expected.seconds == 40.0  # the second task waits for the first
    assert told.tasks[0].expected.cost_micros == pytest.approx(2_000 + 4 * 400, abs=3)
    assert told.totals.low.cost_micros < told.totals.expected.cost_micros < told.totals.high.cost_micros  # type: ignore[operator]


async def test_builds_that_run_that_are_anothers_or_that_never_had_tasks_do_not_count(at: Desk) -> None:
    for number, project, over in ((1, "a", False), (2, "b", True)):
        build = await at.ended(number, tasks={"one": 10.0}, over=over, project=project)
        await at.called(build, tokens=(1_000, 100))
    planned = await at.ended(3, tasks={})
    await at.called(planned, task="", phase="plan", tokens=(1_000, 100))
    assert (await at.forecast()).basis.startswith("a guess")


async def test_a_lost_call_counts_as_a_call(at: Desk) -> None:
    build = await at.ended(1, tasks={"one": 10.0})
    await at.called(build, tokens=(1_000, 100))
    await at.called(build, number=2, tokens=None)
    assert (await at.forecast()).tasks[0].expected.calls == 2


async def test_only_the_last_twenty_builds_count(at: Desk) -> None:
    for number in range(1, 24):
        build = await at.ended(number, tasks={"one": float(number)})
        await at.called(build, tokens=(1_000, 100))
    told = await at.forecast()
    assert told.basis.startswith("history of this project: 20 builds, 20 tasks")
    assert told.tasks[0].expected.seconds == 13.0


async def test_what_would_run_where_is_said_in_the_words_of_this_installation(at: Desk) -> None:
    told = await at.forecast(review=True, approve=("plan", "change"), delivers=True, validation=("judge",))
    first = told.tasks[0]
    assert (first.model, first.asks) == ("fast", "mendwork-model")
    assert (first.engine, first.tests) == ("bubblewrap", "mendwork-sandbox")
    assert [step.partition(":")[0] for step in told.after] == [
        "plan",
        "merges",
        "review",
        "change",
        "landing",
        "delivery",
    ]
    assert "judge on mendwork-model" in told.after[2]


async def test_a_review_that_history_knows_is_in_the_totals(at: Desk) -> None:
    build = await at.ended(1, tasks={"one": 10.0})
    await at.called(build, tokens=(1_000, 100))
    await at.called(build, task="", phase="review", tokens=(5_000, 50))
    without, reviewed = await at.forecast(), await at.forecast(review=True, validation=("fast",))
    assert reviewed.totals.expected.input_tokens - without.totals.expected.input_tokens == 5_000
    assert "a guess" not in reviewed.basis


async def test_a_large_plan_lists_fifty_tasks_and_counts_all(at: Desk) -> None:
    many = tuple(TaskBrief(id=f"t{n}", title="x" * 100, depends_on=()) for n in range(300))
    told = await at.forecast(tasks=many)
    assert (len(told.tasks), told.more, told.totals.expected.calls) == (LISTED, 250, 600)
    assert len(str(asdict(told))) < 30_000
