"""One model call as the log tells it: where its prompt and its answer lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.ports.store import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    """``prompt``, ``answer`` and ``value`` are digests; ``answer`` is "" of one that failed, ``value`` of one that does
    not fit. ``phase`` is what it was for: plan, change, review."""

    phase: str
    role: str
    attempt: int
    turn: int
    model: str
    prompt: str
    answer: str
    value: str
    cost_micros: int | None
    pinned: Mapping[str, Any] = field(default_factory=dict)


def call_of(event: Event) -> CallDetails:
    """What a ``call.answered`` or ``call.failed`` tells; earlier logs know no phase, and their step stands for it."""
    data = event.data
    usage: Any = data.get("usage") or {}
    return CallDetails(
        phase=str(data.get("phase") or data.get("step", "")),
        role=str(data.get("role", "")),
        attempt=event.attempt,
        turn=int(data.get("turn") or 0),
        model=str(data.get("model", "")),
        prompt=str(data.get("prompt", "")),
        answer=str(data.get("answer", "")),
        value=str(data.get("value", "")),
        cost_micros=usage.get("cost_micros"),
        pinned=dict(data.get("pinned") or {}),
    )


def faults_in(event: Event) -> list[Mapping[str, Any]]:
    """The faults of all its tries; an answer that did not fit is one more."""
    found = list(event.data.get("faults", ()))
    problems = event.data.get("problems")
    if problems:
        found.append({"kind": "UnusableAnswer", "source": event.data.get("model", ""), "sentence": problems[0]})
    return found
