"""A classified fault, as it travels through heartbeats, failures and results into the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain import errors
from domain.errors import Busy, MendworkError, Transient

MAX_SENTENCE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``kind`` is the error's class name, ``source`` what failed (a model's name, "sandbox", …), ``number`` the try."""

    kind: str
    sentence: str
    source: str
    number: int
    retry_after: float | None = None

    @classmethod
    def of(cls, error: BaseException, *, source: str, number: int) -> Fault:
        """Classify an exception; what is not ours keeps its class name only, as its text may hold anything."""
        ours = isinstance(error, MendworkError)
        return cls(
            kind=type(error).__name__,
            sentence=str(error)[:MAX_SENTENCE] if ours else "an unexpected error of ours; see the worker's log",
            source=source,
            number=number,
            retry_after=error.retry_after if isinstance(error, Transient) else None,
        )

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> Fault:
        """The inverse of ``dataclasses.asdict``; foreign fields are left out."""
        return cls(
            kind=str(raw.get("kind", "unknown")),
            sentence=str(raw.get("sentence", ""))[:MAX_SENTENCE],
            source=str(raw.get("source", "")),
            number=int(raw.get("number", 0)),
            retry_after=raw.get("retry_after"),
        )


def is_transient(kind: str) -> bool:
    """Whether the error class of that name may go away by itself."""
    found = getattr(errors, kind, None)
    return isinstance(found, type) and issubclass(found, Transient)


def told_after(earlier: tuple[Fault, ...], last: Fault) -> tuple[Fault, ...]:
    """The faults of all tries with that of the last one. Of waits in a row the last one is told: an activity may wait
    for days, and what its heartbeats carry must not grow."""
    again = bool(earlier) and _is_wait(last.kind) and earlier[-1].kind == last.kind
    return (*earlier[:-1], last) if again else (*earlier, last)


def _is_wait(kind: str) -> bool:
    found = getattr(errors, kind, None)
    return isinstance(found, type) and issubclass(found, Busy)
