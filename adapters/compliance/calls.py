"""What every record of model calls must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from domain.errors import KeyConflict, Overtaken
from domain.money.budget import Budget, Payer
from domain.money.charge import Charge
from domain.money.usage import FREE, Bill, Price, Quote, Usage
from domain.ports.language_model import CallKey
from domain.ports.store import BegunCall, CallTry, FailedCall, RecordedCall, Store

KEY = CallKey(saga="build-a-1-task-one", step="change", attempt=1)
USAGE = Usage(input_tokens=1200, output_tokens=300, cost_micros=8100)
PAYER = Payer(project="a", build="build-a-1", task="one", user="ada", phase="tasks", role="coding")
UNLIMITED = Budget(task=None, build=None, day=None, calls=1000)
BOUND = 20_000
NOON = 1_795_176_000_000  # 2026-11-20 12:00 UTC
CALL = BegunCall(request="r1", model="fast", payer=PAYER, at=NOON, budget=UNLIMITED, bound=BOUND)
PINNED = {"temperature": 0, "seed": 7}
ANSWER = RecordedCall(
    request="r1",
    model="fast",
    answer="d1",
    value="v1",
    problems=("no 'summary'", "ü"),
    usage=USAGE,
    pinned=PINNED,
    bound=BOUND,
)
REFUSED = FailedCall(fault="RateLimited", bill=FREE)
LOST = FailedCall(fault="ProviderUnavailable")


async def begun(store: Store, *, key: CallKey = KEY, call: BegunCall = CALL) -> int:
    return await store.calls.begin(key, call)


def tried(number: int, state: str, charge: Charge, *, fault: str = "", usage: Usage | None = None) -> CallTry:
    tried = CallTry(
        key=str(KEY),
        build="build-a-1",
        number=number,
        model="fast",
        state=state,
        fault=fault,
        usage=usage,
        payer=PAYER,
        attempt=1,
        at=NOON,
        charge=charge,
    )
    return tried if usage is None else replace(tried, pinned=PINNED)


HELD = Charge(bound=BOUND)
PAID = Charge(bound=BOUND, money="settled", settled=8100)


class CallsCompliance:
    async def test_nothing_is_found_before_an_answer(self, store: Store) -> None:
        assert await store.calls.find(KEY, request="r1") is None
        await begun(store)
        assert await store.calls.find(KEY, request="r1") is None

    async def test_a_recorded_answer_is_found_as_it_was(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=ANSWER)
        assert await store.calls.find(KEY, request="r1") == ANSWER
        assert await store.calls.find(replace(KEY, turn=2), request="r1") is None

    async def test_another_request_under_an_answered_key_is_refused(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=ANSWER)
        with pytest.raises(KeyConflict, match="build-a-1-task-one/change/1/1"):
            await store.calls.find(KEY, request="r2")

    async def test_tries_are_numbered_and_a_lost_one_is_unknown_with_unknown_cost(self, store: Store) -> None:
        assert [await begun(store), await begun(store)] == [1, 2]
        assert list(await store.calls.tries("build-a-1")) == [
            tried(1, "unknown", HELD.lost()),
            tried(2, "running", HELD),
        ]

    async def test_a_fault_and_then_an_answer_are_both_kept(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=REFUSED)
        await store.calls.end(KEY, await begun(store), outcome=ANSWER)
        assert list(await store.calls.tries("build-a-1")) == [
            tried(1, "failed", HELD.billed(0), fault="RateLimited"),
            tried(2, "answered", PAID, usage=USAGE),
        ]

    async def test_a_try_lost_in_flight_is_unknown_and_keeps_its_fault(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=LOST)
        assert list(await store.calls.tries("build-a-1")) == [
            tried(1, "unknown", HELD.lost(), fault="ProviderUnavailable")
        ]

    async def test_an_answer_of_no_use_is_paid_all_the_same(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=FailedCall(fault="X", bill=Bill(usage=USAGE)))
        assert list(await store.calls.tries("build-a-1")) == [
            replace(tried(1, "failed", PAID, fault="X", usage=USAGE), pinned={})
        ]
        assert await store.calls.find(KEY, request="r1") is None

    async def test_prices_have_versions_and_each_call_names_its_own(self, store: Store) -> None:
        prices = [(3, "here"), (3, "here"), (4, "here"), (3, "there"), (3, "there")]
        for micros, source in prices:
            quote = Quote(price=Price(input_micros_per_million=micros, output_micros_per_million=1), source=source)
            await begun(store, call=replace(CALL, quote=quote))
        await begun(store, key=replace(KEY, turn=2), call=replace(CALL, model="slow", quote=quote))
        await begun(store, call=replace(CALL, bound=None))
        assert [call.price for call in await store.calls.tries("build-a-1")] == [1, 1, 2, 3, 3, 1, 0]

    async def test_racing_new_prices_are_one_version(self, store: Store) -> None:
        quote = Quote(price=Price(input_micros_per_million=1, output_micros_per_million=1), source="here")
        keys = [replace(KEY, turn=turn) for turn in range(1, 9)]
        await asyncio.gather(*(begun(store, key=key, call=replace(CALL, quote=quote)) for key in keys))
        assert {call.price for call in await store.calls.tries("build-a-1")} == {1}

    async def test_an_unknown_price_is_not_zero(self, store: Store) -> None:
        answer = replace(ANSWER, usage=replace(USAGE, cost_micros=None), value="", problems=(), bound=None)
        await store.calls.end(KEY, await begun(store, call=replace(CALL, bound=None)), outcome=answer)
        assert await store.calls.find(KEY, request="r1") == answer

    @pytest.mark.parametrize("outcome", [ANSWER, REFUSED, LOST], ids=["answer", "fault", "lost"])
    async def test_repeating_an_end_changes_nothing(self, store: Store, outcome: RecordedCall | FailedCall) -> None:
        number = await begun(store)
        await store.calls.end(KEY, number, outcome=outcome)
        before = await store.calls.tries("build-a-1")
        await store.calls.end(KEY, number, outcome=outcome)
        assert await store.calls.tries("build-a-1") == before

    @pytest.mark.parametrize(
        "later", [replace(ANSWER, answer="d2"), replace(ANSWER, usage=replace(USAGE, output_tokens=1)), REFUSED, LOST]
    )
    async def test_another_end_of_the_same_try_is_refused(self, store: Store, later: RecordedCall | FailedCall) -> None:
        number = await begun(store)
        await store.calls.end(KEY, number, outcome=ANSWER)
        with pytest.raises(KeyConflict, match="ended otherwise"):
            await store.calls.end(KEY, number, outcome=later)
        assert await store.calls.find(KEY, request="r1") == ANSWER

    async def test_a_try_given_up_too_early_may_still_answer(self, store: Store) -> None:
        slow = await begun(store)
        await begun(store)
        await store.calls.end(KEY, slow, outcome=ANSWER)
        assert await store.calls.find(KEY, request="r1") == ANSWER

    async def test_a_late_second_answer_is_paid_but_not_taken(self, store: Store) -> None:
        slow, quick = await begun(store), await begun(store)
        await store.calls.end(KEY, quick, outcome=ANSWER)
        for _ in range(2):
            with pytest.raises(Overtaken):
                await store.calls.end(KEY, slow, outcome=replace(ANSWER, answer="d2"))
        assert await store.calls.find(KEY, request="r1") == ANSWER
        assert list(await store.calls.tries("build-a-1")) == [
            tried(1, "failed", PAID, fault="Overtaken", usage=USAGE),
            tried(2, "answered", PAID, usage=USAGE),
        ]

    async def test_no_new_try_begins_once_the_key_is_answered(self, store: Store) -> None:
        await store.calls.end(KEY, await begun(store), outcome=ANSWER)
        with pytest.raises(Overtaken):
            await begun(store)

    async def test_an_end_without_a_begin_is_refused(self, store: Store) -> None:
        with pytest.raises(KeyConflict, match="no try 1"):
            await store.calls.end(KEY, 1, outcome=ANSWER)

    async def test_an_answer_to_another_request_is_refused(self, store: Store) -> None:
        number = await begun(store)
        with pytest.raises(KeyConflict, match="another request"):
            await store.calls.end(KEY, number, outcome=replace(ANSWER, request="r2"))

    async def test_tries_are_listed_by_build_in_order_of_their_start(self, store: Store) -> None:
        other = replace(KEY, saga="build-a-2")
        await begun(store, key=other, call=replace(CALL, payer=replace(PAYER, build="build-a-2")))
        await begun(store)
        await begun(store, key=replace(KEY, step="again"))
        assert [t.key for t in await store.calls.tries("build-a-1")] == [str(KEY), str(replace(KEY, step="again"))]

    async def test_racing_begins_get_different_numbers(self, store: Store) -> None:
        numbers = await asyncio.gather(*(begun(store) for _ in range(8)))
        assert sorted(numbers) == list(range(1, 9))
        states = [t.state for t in await store.calls.tries("build-a-1")]
        assert states.count("running") == 1
