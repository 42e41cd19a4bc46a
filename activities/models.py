"""Calling a model: once per logical attempt, whatever dies on the way."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from temporalio import activity

from activities.beating import earlier_faults
from activities.documents import canonical
from domain.build.prompt import Prompt
from domain.errors import MendworkError
from domain.money.usage import Usage
from domain.ports.blobs import Blobs
from domain.ports.language_model import AnswerSchemas, CallKey, LanguageModel, ModelAnswer, ModelRequest
from domain.ports.store import Calls, RecordedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModelInput:
    """``prompt`` is the blob's digest, ``schema_name`` the domain class to answer with, ``seconds`` the time limit."""

    key: CallKey
    build: str
    model: str
    prompt: str
    schema_name: str
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledModel:
    """``answer`` is the raw text's digest, ``value`` its canonical JSON's ("" when it does not fit: see ``problems``).

    ``faults`` are those of all tries before, as plain mappings.
    """

    model: str
    answer: str
    value: str
    problems: tuple[str, ...]
    usage: Usage
    faults: tuple[Mapping[str, Any], ...]


class Models:
    """Runs in the process that holds the provider keys: it sees blobs and the ledger, no repository."""

    def __init__(self, *, model: LanguageModel, schemas: AnswerSchemas, calls: Calls, blobs: Blobs) -> None:
        self._model = model
        self._schemas = schemas
        self._calls = calls
        self._blobs = blobs

    @activity.defn
    async def call_model(self, request: CallModelInput) -> CalledModel:
        """Find the recorded answer of this logical attempt, or make the call and record it before returning.

        Raises RateLimited, ProviderUnavailable, ProviderRefused, UnknownName; KeyConflict when the key has answered
        another request.
        """
        digest = _request_digest(request)
        found = await self._calls.find(request.key, request=digest)
        if found is None:
            found = await self._ask(request, digest)
        return CalledModel(
            model=found.model,
            answer=found.answer,
            value=found.value,
            problems=found.problems,
            usage=found.usage,
            faults=tuple(asdict(fault) for fault in earlier_faults()),
        )

    async def _ask(self, request: CallModelInput, digest: str) -> RecordedCall:
        prompt = Prompt.from_bytes(await self._blobs.get(request.prompt))
        number = await self._calls.begin(request.key, build=request.build, request=digest, model=request.model)
        try:
            answer = await self._model.complete(_model_request(request, prompt))
        except MendworkError as error:
            await self._calls.end(request.key, number, outcome=type(error).__name__)
            raise
        recorded = await self._recorded(request, digest, answer)
        await self._calls.end(request.key, number, outcome=recorded)
        return recorded

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
