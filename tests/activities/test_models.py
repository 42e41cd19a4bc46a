"""A model call is made once per logical attempt, whatever dies on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from activities.models import CalledModel, CallModelInput, Models
from adapters.blobs.memory import MemoryBlobs
from adapters.schemas import open_schemas
from adapters.store import open_store
from domain.build.prompt import Prompt
from domain.errors import KeyConflict, MendworkError, RateLimited
from domain.money.usage import Usage
from domain.ports.language_model import CallKey, Message, ModelAnswer, ModelRequest
from domain.ports.store import Store

USAGE = Usage(input_tokens=100, output_tokens=20, cost_micros=700)
PLAN = '{"summary": "s", "tasks": []}'
KEY = CallKey(saga="build-x-1", step="plan", attempt=1)


class Provider:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: str | MendworkError) -> None:
        self._answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, MendworkError):
            raise answer
        return ModelAnswer(text=answer, usage=USAGE)


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
        )

    async def call(self, request: CallModelInput) -> CalledModel:
        called = await ActivityEnvironment().run(self._models.call_model, request)
        assert isinstance(called, CalledModel)
        return called

    async def states(self) -> list[tuple[str, str]]:
        return [(call.state, call.fault) for call in await self.store.calls.tries("build-x-1")]


async def desk(*answers: str | MendworkError) -> Desk:
    return Desk(Provider(*answers), await open_store("memory://"), MemoryBlobs())


async def test_an_answer_is_stored_with_its_value_and_cost() -> None:
    at = await desk(PLAN)
    called = await at.call(await at.request())
    assert await at.blobs.get(called.answer) == PLAN.encode()
    assert await at.blobs.get(called.value) == b'{"summary":"s","tasks":[]}'
    assert called.usage == USAGE
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
    at = await desk(RateLimited("later", retry_after=1), PLAN)
    request = await at.request()
    with pytest.raises(RateLimited):
        await at.call(request)
    await at.call(request)
    assert await at.states() == [("failed", "RateLimited"), ("answered", "")]


async def test_a_call_lost_with_its_worker_counts_as_unknown_not_as_free() -> None:
    at = await desk(PLAN)
    request = await at.request()
    await at.store.calls.begin(KEY, build="build-x-1", request="whatever", model="planner")  # its worker dies here
    await at.call(request)
    assert await at.states() == [("unknown", ""), ("answered", "")]


async def test_an_answer_that_does_not_fit_keeps_its_text_and_says_why() -> None:
    at = await desk('{"summary": "s"')
    called = await at.call(await at.request())
    assert called.value == ""
    assert called.problems
    assert await at.blobs.get(called.answer) == b'{"summary": "s"'


async def test_a_text_that_is_no_utf8_is_stored_and_never_raises() -> None:
    at = await desk("\ud800 no json")
    assert (await at.call(await at.request())).problems
