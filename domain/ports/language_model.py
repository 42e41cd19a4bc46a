"""Calls of language models: one request in, one answer out, no retries inside."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from domain.errors import MendworkError
from domain.money.usage import Bill, Quote, Usage

Error = TypeVar("Error", bound=MendworkError)


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

    @property
    def seed(self) -> int:
        """What a model's sampling starts from: the same for every try of this call, 31 bits."""
        return int.from_bytes(hashlib.sha256(str(self).encode("utf-8", "surrogatepass")).digest()[:4]) >> 1


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
    ``pinned`` is what was sent to make the answer repeatable ("temperature", "seed"), as far as the model takes it.
    """

    text: str
    usage: Usage
    cut: bool = False
    pinned: Mapping[str, Any] = field(default_factory=dict)


def with_bill(error: Error, bill: Bill) -> Error:
    """``error``, which now says what the failed call cost."""
    error.__dict__["bill"] = bill
    return error


def bill_of(error: BaseException) -> Bill | None:
    """None when nobody knows whether the provider billed the call: it has to be taken for billed."""
    bill = error.__dict__.get("bill")
    return bill if isinstance(bill, Bill) else None


class LanguageModel(Protocol):
    """Makes exactly one provider call per ``complete``; the caller owns retry, fallback and idempotency."""

    async def quote(self, model: str) -> Quote | None:
        """The most that the model's tokens cost, or None where nobody knows. Makes no call. Raises UnknownName."""
        ...

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Raises RateLimited, ProviderUnavailable (try again), CredentialsRefused, ProviderRefused, TooLarge,
        UnknownName (never will).

        An error carries its Bill (see ``bill_of``) when it is certain what the call cost: nothing, as the provider
        answered with an error status or was never reached, or the usage of an answer that is of no use.
        """
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
