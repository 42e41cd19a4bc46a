"""Calls of language models: one request in, one answer out, no retries inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from domain.money.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """Names one deliberate call, whatever run or worker makes it: the idempotency key of a model call.

    ``saga`` is the workflow id, ``step`` the call's purpose ("plan", "change"), ``attempt`` counts the logical attempts
    of that step from 1, ``turn`` the calls inside one attempt from 1 (the answer was sent back, the next model asked).
    """

    saga: str
    step: str
    attempt: int
    turn: int = 1

    def __str__(self) -> str:
        return f"{self.saga}/{self.step}/{self.attempt}/{self.turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation; ``role`` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """``model`` is a name of the configuration; ``schema_name`` is the domain class that the answer must decode to."""

    key: CallKey
    model: str
    messages: tuple[Message, ...]
    schema_name: str
    max_output_tokens: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """``text`` is the model's raw answer, at most 4 MiB; ``usage`` is what the provider says it took.

    ``cut`` is true when the provider or we stopped before its end: such a text is never executed, see ``decode``.
    """

    text: str
    usage: Usage
    cut: bool = False


class LanguageModel(Protocol):
    """Makes exactly one provider call per ``complete``; the caller owns retry, fallback and idempotency."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Raises RateLimited, ProviderUnavailable (try again), ProviderRefused, TooLarge, UnknownName (never will)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """``value`` is canonical JSON of the domain class, or None; then ``problems`` says why, for the model to read.

    ``repaired`` is true when the text was not JSON as it stood and was mended without guessing.
    """

    value: str | None
    problems: tuple[str, ...] = ()
    repaired: bool = False


class AnswerSchemas(Protocol):
    """JSON schemas of the classes that models answer with, and the way back from text to those classes."""

    def schema(self, name: str) -> Mapping[str, Any]:
        """The JSON schema inside OpenAI's strict subset. Raises UnknownName."""
        ...

    def decode(self, name: str, text: str, *, cut: bool = False) -> Decoded:
        """Never raises for bad text, whatever its size or shape; a ``cut`` answer fits nothing. Raises UnknownName.

        May take seconds for broken text: call it in a thread.
        """
        ...
