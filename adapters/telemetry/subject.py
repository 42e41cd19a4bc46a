"""What an activity is about, as its one argument says it: for the records and the figures made while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from domain.money.usage import Usage
from domain.trace.usual.baseline import Anomaly
from domain.trace.usual.taken import Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a model call ended: ``fault`` is the error's class name, "" for an answer; ``usage`` what was billed."""

    fault: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """A model call that begins. ``model`` is the configuration's name, ``name`` litellm's ``provider/name``."""

    model: str
    name: str
    role: str
    key: str


Ended = Callable[[Outcome], None]
Watcher = Callable[[Calling], Ended]
PhaseEnded = Callable[[Taken, Anomaly | None], None]
"""Hears of a phase that ended, and of what stands out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """``build`` and ``task`` are names, "" where there is none; ``attempt`` 0 likewise. ``role`` is what a model was
    called for. ``watchers`` are told of each model call, ``phases`` of each phase that ends."""

    build: str = ""
    task: str = ""
    attempt: int = 0
    role: str = ""
    watchers: Sequence[Watcher] = field(default=(), repr=False)
    phases: Sequence[PhaseEnded] = field(default=(), repr=False)


NOBODY = Subject()
current: ContextVar[Subject] = ContextVar("telemetry_subject", default=NOBODY)
"""Of the activity that this task runs."""


def tell_phase(taken: Taken, anomaly: Anomaly | None) -> None:
    """To those who watch the activity that this task runs."""
    for ended in current.get().phases:
        ended(taken, anomaly)


def subject_of(
    request: Any, *, workflow: str, watchers: Sequence[Watcher] = (), phases: Sequence[PhaseEnded] = ()
) -> Subject:
    """From the argument of an activity, which may be anything, and the id of the workflow that asked for it."""
    payer, key = getattr(request, "payer", None), getattr(request, "key", None)
    saga, _, task = (_text(key, "saga") or workflow).partition("-task-")
    return Subject(
        build=_text(request, "build") or _text(payer, "build") or saga.removesuffix("-release"),
        task=_text(request, "task") or _text(payer, "task") or task,
        attempt=_number(request, "attempt") or _number(key, "attempt"),
        role=_text(payer, "role"),
        watchers=watchers,
        phases=phases,
    )


def _text(value: Any, name: str) -> str:
    found = getattr(value, name, "")
    return found if isinstance(found, str) else ""


def _number(value: Any, name: str) -> int:
    found = getattr(value, name, 0)
    return found if isinstance(found, int) else 0
