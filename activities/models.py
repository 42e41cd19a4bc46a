"""Calling a model: once per logical attempt, whatever dies on the way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from temporalio import activity

from activities.accounts.turns import Turnstile
from activities.beating import earlier_faults
from activities.documents import canonical
from domain.build.prompt import Prompt
from domain.errors import Overbilled, PriceUnknown
from domain.money.accounts import day_of, limits_of
from domain.money.bound import upper_bound
from domain.money.budget import Budget, Payer
from domain.money.usage import Usage, dollars
from domain.ports.blobs import Blobs
from domain.ports.language_model import AnswerSchemas, CallKey, LanguageModel, ModelAnswer, ModelRequest, bill_of
from domain.ports.store import BegunCall, Calls, FailedCall, RecordedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModelInput:
    """``prompt`` is the blob's digest, ``schema_name`` the domain class to answer with, ``seconds`` the time limit.

    ``payer`` is charged within ``budget``. ``tries`` is how often it may fail before it fails for good: waiting for a
    turn is no try, which a policy of Temporal's could not tell apart (0 leaves it to the policy).
    """

    key: CallKey
    build: str
    model: str
    prompt: str
    schema_name: str
    output_tokens: int
    seconds: float
    payer: Payer
    budget: Budget
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledModel:
    """``answer`` is the raw text's digest, ``value`` its canonical JSON's ("" when it does not fit: see ``problems``).

    ``faults`` are those of all tries before, as plain mappings; ``pinned`` what was pinned of the model's sampling
    (temperature, seed); ``warnings`` a sentence for each account that this call brought over 80 % of its limit.
    """

    model: str
    answer: str
    value: str
    problems: tuple[str, ...]
    usage: Usage
    faults: tuple[Mapping[str, Any], ...]
    pinned: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Models:
    """Runs in the process that holds the provider keys: it sees blobs and the ledger, no repository."""

    def __init__(
        self,
        *,
        model: LanguageModel,
        schemas: AnswerSchemas,
        calls: Calls,
        blobs: Blobs,
        turnstile: Turnstile | None = None,
    ) -> None:
        """Without a ``turnstile`` every call is made at once."""
        self._model = model
        self._schemas = schemas
        self._calls = calls
        self._blobs = blobs
        self._turnstile = turnstile

    @activity.defn
    async def call_model(self, request: CallModelInput) -> CalledModel:
        """Find the recorded answer of this logical attempt, or hold the most that the call can cost, make it, and
        record answer and cost before returning.

        Raises BudgetExhausted, PriceUnknown, Busy and Crowded before the call, Overbilled after one that cost more
        than was held; RateLimited, ProviderUnavailable, CredentialsRefused, ProviderRefused, UnknownName; KeyConflict
        when the key has answered another request.
        """
        digest = _request_digest(request)
        found = await self._calls.find(request.key, request=digest)
        if found is None:
            async with self._turn(request):
                found = await self._ask(request, digest)
        _check_bill(request, found.usage, found.bound)
        return CalledModel(
            model=found.model,
            answer=found.answer,
            value=found.value,
            problems=found.problems,
            usage=found.usage,
            faults=tuple(asdict(fault) for fault in earlier_faults()),
            pinned=found.pinned,
            warnings=found.warnings,
        )

    def _turn(self, request: CallModelInput) -> AbstractAsyncContextManager[None]:
        if self._turnstile is None:
            return nullcontext()
        return self._turnstile.turn(str(request.key), project=request.payer.project, model=request.model)

    async def _ask(self, request: CallModelInput, digest: str) -> RecordedCall:
        prompt = Prompt.from_bytes(await self._blobs.get(request.prompt))
        call = await self._priced(request, prompt, digest)
        number = await self._calls.begin(request.key, call)
        try:
            answer = await self._model.complete(_model_request(request, prompt))
        except BaseException as error:  # also a cancellation: the provider may bill what nobody waits for
            bill = bill_of(error)
            await self._calls.end(request.key, number, outcome=FailedCall(fault=type(error).__name__, bill=bill))
            _check_bill(request, bill.usage if bill else None, call.bound)
            raise
        recorded = await self._recorded(request, digest, answer)
        warnings = await self._calls.end(request.key, number, outcome=recorded)
        return replace(recorded, bound=call.bound, warnings=warnings)

    async def _priced(self, request: CallModelInput, prompt: Prompt, digest: str) -> BegunCall:
        """The call with the most that it can cost. Raises PriceUnknown where a limit needs that and nobody knows."""
        at = int(time.time() * 1000)
        quote = await self._model.quote(request.model)
        if quote is None and limits_of(request.payer, request.budget, day=day_of(at)):
            raise PriceUnknown(
                f"nobody knows what model {request.model} costs, and money is limited: set input_price and "
                f"output_price in [models.{request.model}], in USD per million tokens; 0 for a free one"
            )
        texts = [message.content for message in prompt.messages] + [
            json.dumps(self._schemas.schema(request.schema_name))
        ]
        return BegunCall(
            request=digest,
            model=request.model,
            payer=request.payer,
            at=at,
            budget=request.budget,
            bound=upper_bound(texts, price=quote.price, output_tokens=request.output_tokens) if quote else None,
            quote=quote,
        )

    async def _recorded(self, request: CallModelInput, digest: str, answer: ModelAnswer) -> RecordedCall:
        # In a thread: mending a hopeless text can take seconds, and the heartbeats have to go on.
        decoded = await asyncio.to_thread(self._schemas.decode, request.schema_name, answer.text, cut=answer.cut)
        return RecordedCall(
            request=digest,
            model=request.model,
            answer=await self._blobs.put(answer.text.encode(errors="replace")),
            value=await self._blobs.put(decoded.value.encode()) if decoded.value is not None else "",
            problems=decoded.problems,
            usage=answer.usage,
            pinned=answer.pinned,
        )


def _check_bill(request: CallModelInput, usage: Usage | None, bound: int | None) -> None:
    """Raise Overbilled for a call that cost more than the most that it could, each time that it is looked at."""
    cost = None if usage is None else usage.cost_micros
    if bound is not None and cost is not None and cost > bound:
        raise Overbilled(
            f"model {request.model} billed {dollars(cost)} for call {request.key}, which could cost {dollars(bound)} "
            f"at most; compare input_price and output_price in [models.{request.model}] with its provider's bill"
        )


def _model_request(request: CallModelInput, prompt: Prompt) -> ModelRequest:
    return ModelRequest(
        key=request.key,
        model=request.model,
        messages=prompt.messages,
        schema_name=request.schema_name,
        max_output_tokens=request.output_tokens,
        timeout_seconds=request.seconds,
    )


def _request_digest(request: CallModelInput) -> str:
    """What makes two calls the same question: the model, the prompt and the schema."""
    return hashlib.sha256(canonical([request.model, request.prompt, request.schema_name])).hexdigest()
