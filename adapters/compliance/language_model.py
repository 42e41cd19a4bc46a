"""What every language model adapter, and every way to describe and read answers, has to do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from domain.errors import (
    CredentialsRefused,
    MendworkError,
    ProviderRefused,
    ProviderUnavailable,
    RateLimited,
    UnknownName,
)
from domain.ports.language_model import AnswerSchemas, CallKey, LanguageModel, Message, ModelRequest

ANSWER: Mapping[str, Any] = {"summary": "one task", "tasks": []}
MAX_ANSWER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An adapter with one model behind it. ``calls`` tells how many requests have reached the provider so far."""

    model: LanguageModel
    name: str
    calls: Callable[[], int]


OpenProvider = Callable[[Sequence[Mapping[str, Any]]], AbstractContextManager[Provider]]


def plan_request(model: str, *, attempt: int = 1, content: str = "Plan it.", seconds: float = 20.0) -> ModelRequest:
    """A request for a plan."""
    return ModelRequest(
        key=CallKey(saga="build-notes-1", step="plan", attempt=attempt),
        model=model,
        messages=(Message(role="system", content="You plan."), Message(role="user", content=content)),
        schema_name="Plan",
        max_output_tokens=1000,
        timeout_seconds=seconds,
    )


class LanguageModelCompliance:
    """Subclasses give a fixture ``open_provider``: from the faults that a provider plays, in order, before it answers
    with ANSWER, to a context with that Provider. A fault is a mapping with ``kind`` and its parameters.
    """

    async def test_an_answer_has_its_text_and_its_usage(self, open_provider: OpenProvider) -> None:
        with open_provider([]) as provider:
            answer = await provider.model.complete(plan_request(provider.name, content="x" * 400))
        assert json.loads(answer.text) == ANSWER
        assert answer.usage.input_tokens >= 100
        assert answer.usage.output_tokens > 0
        assert answer.cut is False

    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            ("rate_limited", RateLimited),
            ("server_error", ProviderUnavailable),
            ("cut", ProviderUnavailable),
            ("empty", ProviderUnavailable),
            ("refused", CredentialsRefused),
            ("context_length", ProviderRefused),
        ],
    )
    async def test_a_fault_is_classified_after_one_call(
        self, open_provider: OpenProvider, kind: str, error: type[MendworkError]
    ) -> None:
        with open_provider([{"kind": kind}]) as provider:
            with pytest.raises(error) as caught:
                await provider.model.complete(plan_request(provider.name))
            assert provider.calls() == 1
            assert type(caught.value) is error
            assert 0 < len(str(caught.value)) < 300
            assert str(caught.value).isprintable()
            assert json.loads((await provider.model.complete(plan_request(provider.name))).text) == ANSWER
            assert provider.calls() == 2

    @pytest.mark.parametrize("kind", ["malformed_json", "prose", "wrong_schema"])
    async def test_an_answer_of_any_shape_is_handed_on(self, open_provider: OpenProvider, kind: str) -> None:
        with open_provider([{"kind": kind}]) as provider:
            answer = await provider.model.complete(plan_request(provider.name))
            assert answer.text
            assert answer.cut is False
            assert provider.calls() == 1

    @pytest.mark.parametrize("kind", ["cut_json", "huge"])
    async def test_an_answer_without_its_end_says_so(self, open_provider: OpenProvider, kind: str) -> None:
        with open_provider([{"kind": kind}]) as provider:
            answer = await provider.model.complete(plan_request(provider.name))
            assert answer.cut is True
            assert len(answer.text.encode()) <= MAX_ANSWER_BYTES
            assert answer.usage.output_tokens > 0, "it is paid for all the same"
            assert provider.calls() == 1

    async def test_it_waits_as_long_as_the_provider_says(self, open_provider: OpenProvider) -> None:
        with open_provider([{"kind": "rate_limited", "retry_after": 7}]) as provider:
            with pytest.raises(RateLimited) as caught:
                await provider.model.complete(plan_request(provider.name))
            assert caught.value.retry_after == 7

    async def test_a_slow_answer_is_an_answer(self, open_provider: OpenProvider) -> None:
        with open_provider([{"kind": "slow", "seconds": 0.3}]) as provider:
            assert json.loads((await provider.model.complete(plan_request(provider.name))).text) == ANSWER

    async def test_silence_ends_at_the_timeout(self, open_provider: OpenProvider) -> None:
        with open_provider([{"kind": "hang"}]) as provider:
            await provider.model.complete(plan_request(provider.name, attempt=2))
            started = time.monotonic()
            with pytest.raises(ProviderUnavailable):
                await provider.model.complete(plan_request(provider.name, seconds=0.5))
            assert time.monotonic() - started < 5
            assert provider.calls() == 2

    async def test_a_cancelled_call_ends_at_once(self, open_provider: OpenProvider) -> None:
        with open_provider([{"kind": "hang"}]) as provider:
            call = asyncio.create_task(provider.model.complete(plan_request(provider.name, seconds=60)))
            while provider.calls() == 0:  # noqa: ASYNC110 - what is waited for happens in the provider
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(call, timeout=5)

    async def test_calls_at_once_get_an_answer_each(self, open_provider: OpenProvider) -> None:
        with open_provider([]) as provider:
            requests = [plan_request(provider.name, content=f"call {number}") for number in range(8)]
            answers = await asyncio.gather(*(provider.model.complete(request) for request in requests))
            assert [json.loads(answer.text) for answer in answers] == [ANSWER] * 8
            assert provider.calls() == 8

    async def test_an_unknown_model_names_the_known_ones(self, open_provider: OpenProvider) -> None:
        with open_provider([]) as provider:
            with pytest.raises(UnknownName, match=f"'nobody'.*known:.*{provider.name}"):
                await provider.model.complete(plan_request("nobody"))
            assert provider.calls() == 0


class AnswerSchemasCompliance:
    """Subclasses give a fixture ``schemas`` that knows at least ``Plan``."""

    def test_what_fits_becomes_canonical_json(self, schemas: AnswerSchemas) -> None:
        decoded = schemas.decode("Plan", '{"tasks": [],  "summary": "\\u00e9"}')
        assert (decoded.value, decoded.problems, decoded.repaired) == ('{"summary":"é","tasks":[]}', (), False)

    def test_prose_and_fences_are_left_out(self, schemas: AnswerSchemas) -> None:
        decoded = schemas.decode("Plan", f"It's simple [1]:\n```json\n{json.dumps(ANSWER)}\n```\nIsn't it?")
        assert json.loads(decoded.value or "") == ANSWER
        assert decoded.repaired is True

    @pytest.mark.parametrize("text", ["", "no", "[]", "null", '{"summary": 1, "tasks": []}', '{"summary": ""}'])
    def test_what_does_not_fit_has_problems_and_no_value(self, schemas: AnswerSchemas, text: str) -> None:
        decoded = schemas.decode("Plan", text)
        assert decoded.value is None
        assert 1 <= len(decoded.problems) <= 10
        assert all(problem and problem.isprintable() for problem in decoded.problems)

    def test_a_cut_off_answer_never_fits(self, schemas: AnswerSchemas) -> None:
        whole = json.dumps(ANSWER)
        for end in range(len(whole)):
            decoded = schemas.decode("Plan", whole[:end])
            assert (decoded.value, bool(decoded.problems)) == (None, True), whole[:end]

    def test_an_answer_that_is_known_to_be_cut_never_fits(self, schemas: AnswerSchemas) -> None:
        decoded = schemas.decode("Plan", json.dumps(ANSWER), cut=True)
        assert decoded.value is None
        assert "cut off" in decoded.problems[0]

    def test_an_unknown_schema_names_the_known_ones(self, schemas: AnswerSchemas) -> None:
        with pytest.raises(UnknownName, match="Plan"):
            schemas.schema("Poem")
        with pytest.raises(UnknownName, match="Plan"):
            schemas.decode("Poem", "{}")
