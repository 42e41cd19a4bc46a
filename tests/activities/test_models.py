"""A model call is made once per logical attempt, whatever dies on the way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from activities.models import CalledModel, CallModelInput, Models
from adapters.blobs.memory import MemoryBlobs
from adapters.schemas import open_schemas
from adapters.store import open_store
from domain.build.prompt import Prompt
from domain.errors import (
    BudgetExhausted,
    Busy,
    KeyConflict,
    MendworkError,
    Overbilled,
    PriceUnknown,
    ProviderUnavailable,
    RateLimited,
    UnknownName,
)
from domain.money.bound import CALL_TOKENS, MESSAGE_TOKENS
from domain.money.budget import Budget, Payer, Spent
from domain.money.usage import FREE, Bill, Price, Quote, Usage
from domain.ports.language_model import CallKey, Message, ModelAnswer, ModelRequest, with_bill
from domain.ports.store import BegunCall, Store

USAGE = Usage(input_tokens=100, output_tokens=20, cost_micros=700)
QUOTE = Quote(price=Price(input_micros_per_million=1_000_000, output_micros_per_million=5_000_000), source="a test")
PAYER = Payer(project="x", build="build-x-1", user="ada", phase="plan", role="reasoning")
BUDGET = Budget(build=1_000_000)
PINNED = {"temperature": 0, "seed": 3}
ACCOUNT = "build:build-x-1"
PLAN = '{"summary": "s", "tasks": []}'
KEY = CallKey(saga="build-x-1", step="plan", attempt=1)


class Provider:
    """Answers what it is told to, and remembers what it was asked. "hang" never answers."""

    def __init__(self, *answers: str | MendworkError, usage: Usage = USAGE, quote: Quote | None = QUOTE) -> None:
        self._answers = list(answers)
        self._usage = usage
        self._quote = quote
        self.asked: list[ModelRequest] = []
        self.hanging = asyncio.Event()

    async def quote(self, model: str) -> Quote | None:
        if model not in ("planner", "another"):
            raise UnknownName.among("model", model, ["another", "planner"])
        return self._quote

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, MendworkError):
            raise answer
        if answer == "hang":
            self.hanging.set()
            await asyncio.Event().wait()
        return ModelAnswer(text=answer, usage=self._usage, pinned=PINNED)


class Desk:
    """The activity with everything that it needs."""

    def __init__(self, provider: Provider, store: Store, blobs: MemoryBlobs) -> None:
        self.provider = provider
        self.store = store
        self.blobs = blobs
        self._models = Models(model=provider, schemas=open_schemas(), calls=store.calls, blobs=blobs)

    async def request(self) -> CallModelInput:
        prompt = Prompt(template="plan", version="v", messages=(Message(role="user", content="plan it"),))
        return CallModelInput(
            key=KEY,
            build="build-x-1",
            model="planner",
            prompt=await self.blobs.put(prompt.to_bytes()),
            schema_name="Plan",
            output_tokens=100,
            seconds=5,
            payer=PAYER,
            budget=BUDGET,
        )

    async def call(self, request: CallModelInput) -> CalledModel:
        called = await ActivityEnvironment().run(self._models.call_model, request)
        assert isinstance(called, CalledModel)
        return called

    async def states(self) -> list[tuple[str, str]]:
        return [(call.state, call.fault) for call in await self.store.calls.tries("build-x-1")]

    async def spent(self) -> Spent:
        return await self.store.ledger.spent(ACCOUNT)


async def desk(*answers: str | MendworkError, usage: Usage = USAGE, quote: Quote | None = QUOTE) -> Desk:
    return Desk(Provider(*answers, usage=usage, quote=quote), await open_store("memory://"), MemoryBlobs())


async def test_an_answer_is_stored_with_its_value_and_cost() -> None:
    at = await desk(PLAN)
    called = await at.call(await at.request())
    assert await at.blobs.get(called.answer) == PLAN.encode()
    assert await at.blobs.get(called.value) == b'{"summary":"s","tasks":[]}'
    assert (called.usage, called.pinned, called.warnings) == (USAGE, PINNED, ())
    assert at.provider.asked[0].messages == (Message(role="user", content="plan it"),)
    assert at.provider.asked[0].key == KEY


async def test_a_repeat_after_a_crash_finds_the_answer_and_asks_nobody() -> None:
    at = await desk(PLAN)
    request = await at.request()
    first = await at.call(request)
    assert await at.call(request) == first
    assert len(at.provider.asked) == 1


async def test_another_question_under_the_same_key_fails_loudly() -> None:
    at = await desk(PLAN)
    request = await at.request()
    await at.call(request)
    with pytest.raises(KeyConflict):
        await at.call(replace(request, model="another"))


async def test_a_fault_is_recorded_and_the_next_try_asks_again() -> None:
    at = await desk(with_bill(RateLimited("later", retry_after=1), FREE), PLAN)
    request = await at.request()
    with pytest.raises(RateLimited):
        await at.call(request)
    await at.call(request)
    assert await at.states() == [("failed", "RateLimited"), ("answered", "")]


async def test_a_call_lost_with_its_worker_counts_as_unknown_not_as_free() -> None:
    at = await desk(PLAN)
    request = await at.request()
    lost = BegunCall(request="whatever", model="planner", payer=PAYER, at=0, budget=BUDGET, bound=40)
    await at.store.calls.begin(KEY, lost)  # its worker dies here
    await at.call(request)
    assert await at.states() == [("unknown", ""), ("answered", "")]
    assert await at.spent() == Spent(settled=700, unknown=40, calls=2)


async def test_an_answer_that_does_not_fit_keeps_its_text_and_says_why() -> None:
    at = await desk('{"summary": "s"')
    called = await at.call(await at.request())
    assert called.value == ""
    assert called.problems
    assert await at.blobs.get(called.answer) == b'{"summary": "s"'


async def test_a_text_that_is_no_utf8_is_stored_and_never_raises() -> None:
    at = await desk("\ud800 no json")
    assert (await at.call(await at.request())).problems


def most(at: Desk) -> int:
    """What the call may cost, reckoned by hand."""
    schema = len(json.dumps(open_schemas().schema("Plan")).encode())
    tokens = len("plan it") + MESSAGE_TOKENS + schema + MESSAGE_TOKENS + CALL_TOKENS
    return tokens + 5 * 100


async def test_the_most_that_a_call_can_cost_is_held_while_it_runs_and_settled_by_its_usage() -> None:
    at = await desk("hang", PLAN)
    request = await at.request()
    running = asyncio.create_task(at.call(request))
    await at.provider.hanging.wait()
    assert await at.spent() == Spent(held=most(at), calls=1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await at.states() == [("unknown", "CancelledError")]
    assert await at.spent() == Spent(unknown=most(at), calls=1)
    await at.call(request)
    assert await at.spent() == Spent(settled=700, unknown=most(at), calls=2)


@pytest.mark.parametrize("name", ["build", "project", "user", "day"])
async def test_a_call_that_might_pass_a_limit_is_not_made(name: str) -> None:
    at = await desk(PLAN)
    request = await at.request()
    with pytest.raises(BudgetExhausted, match=f"raise the {name} budget"):
        await at.call(replace(request, budget=Budget(**{name: most(at) - 1})))
    assert at.provider.asked == []
    await at.call(replace(request, budget=Budget(**{name: most(at)})))


async def test_a_task_has_limits_of_its_own() -> None:
    at = await desk(PLAN, PLAN)
    request = replace(await at.request(), payer=replace(PAYER, task="api"))
    with pytest.raises(BudgetExhausted, match="task api of build-x-1"):
        await at.call(replace(request, budget=Budget(task=most(at) - 1)))
    await at.call(replace(request, budget=Budget(calls=1)))
    with pytest.raises(BudgetExhausted, match="made 1 calls of 1"):
        await at.call(replace(request, key=replace(KEY, turn=2), budget=Budget(calls=1)))


async def test_a_call_waits_for_what_a_running_one_holds() -> None:
    at = await desk("hang", PLAN)
    request = replace(await at.request(), budget=Budget(build=most(at) + 700))
    running = asyncio.create_task(at.call(request))
    await at.provider.hanging.wait()
    with pytest.raises(Busy):
        await at.call(replace(request, key=replace(KEY, turn=2)))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    with pytest.raises(BudgetExhausted, match="lost in flight"):
        await at.call(replace(request, key=replace(KEY, turn=2)))


async def test_without_a_price_no_limited_call_is_made_and_the_cure_is_named() -> None:
    at = await desk(PLAN, usage=replace(USAGE, cost_micros=None), quote=None)
    request = await at.request()
    with pytest.raises(PriceUnknown, match=r"input_price and output_price in \[models\.planner\]"):
        await at.call(request)
    assert (at.provider.asked, await at.states()) == ([], [])
    called = await at.call(replace(request, budget=Budget(task=None, build=None, day=None)))
    assert called.usage.cost_micros is None


async def test_a_free_model_needs_no_budget() -> None:
    free = Quote(price=Price(input_micros_per_million=0, output_micros_per_million=0), source="a test")
    at = await desk(PLAN, usage=replace(USAGE, cost_micros=0), quote=free)
    await at.call(replace(await at.request(), budget=Budget(build=0, day=0)))
    assert await at.spent() == Spent(calls=1)


async def test_an_unknown_model_is_refused_before_anything_is_held() -> None:
    at = await desk()
    with pytest.raises(UnknownName):
        await at.call(replace(await at.request(), model="nobody"))
    assert await at.states() == []


@pytest.mark.parametrize(
    ("error", "state", "spent"),
    [
        (with_bill(ProviderUnavailable("HTTP 500"), FREE), "failed", Spent(calls=1)),
        (with_bill(ProviderUnavailable("empty"), Bill(usage=USAGE)), "failed", Spent(settled=700, calls=1)),
        (ProviderUnavailable("the connection was cut"), "unknown", None),
    ],
    ids=["refused", "empty", "cut"],
)
async def test_a_failed_call_costs_what_is_known_of_it(error: MendworkError, state: str, spent: Spent | None) -> None:
    at = await desk(error)
    with pytest.raises(ProviderUnavailable):
        await at.call(await at.request())
    assert await at.states() == [(state, "ProviderUnavailable")]
    assert await at.spent() == (spent or Spent(unknown=most(at), calls=1))


async def test_a_bill_above_the_most_is_settled_and_told_however_often_it_is_looked_at() -> None:
    dear = replace(USAGE, cost_micros=500_000)
    at = await desk(PLAN, usage=dear)
    request = await at.request()
    for _ in range(2):
        with pytest.raises(Overbilled, match=r"planner billed \$0\.5000 for call build-x-1/plan/1/1, which could"):
            await at.call(request)
    assert len(at.provider.asked) == 1
    assert await at.spent() == Spent(settled=500_000, calls=1)


async def test_a_useless_answer_above_the_most_is_a_wrong_bill_too() -> None:
    bill = Bill(usage=replace(USAGE, cost_micros=500_000))
    at = await desk(with_bill(ProviderUnavailable("empty"), bill))
    with pytest.raises(Overbilled):
        await at.call(await at.request())
    assert await at.spent() == Spent(settled=500_000, calls=1)


async def test_a_limit_in_sight_is_told_also_to_who_repeats_the_call() -> None:
    at = await desk(PLAN, usage=replace(USAGE, cost_micros=1_000))
    request = replace(await at.request(), budget=Budget(user=most(at), day=1_250))
    with pytest.raises(BudgetExhausted):
        await at.call(request)
    cheap = replace(USAGE, cost_micros=most(at))
    near = Desk(Provider(PLAN, usage=cheap), at.store, at.blobs)
    request = replace(request, budget=Budget(user=most(at), day=2 * most(at)))
    for _ in range(2):
        (warning,) = (await near.call(request)).warnings
        assert warning.startswith("user ada has used $")
    assert len(near.provider.asked) == 1


async def test_a_raised_limit_is_no_other_question() -> None:
    at = await desk(PLAN)
    request = await at.request()
    first = await at.call(request)
    assert await at.call(replace(request, budget=Budget(build=0))) == first
