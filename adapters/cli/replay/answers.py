"""What was recorded, said again: a model's answers, found by their key, and a person's, found by what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.models import CalledModel, CallModelInput
from domain.build.names import task_saga_id
from domain.errors import KeyConflict
from domain.money.usage import Usage
from domain.ports.language_model import CallKey
from domain.ports.store import Event

SAYABLE = ("approve", "reject", "retry", "skip", "abort", "allow")
"""The answers that the log keeps whole."""


class RecordedModels:
    """Stands where the model worker would: no key, no network, no money."""

    def __init__(self, build: str, rows: Iterable[Event]) -> None:
        calls = [row for row in rows if row.kind in ("call.answered", "call.failed")]
        self._rows = {str(_key(build, row)): row for row in calls}

    @activity.defn
    async def call_model(self, request: CallModelInput) -> CalledModel:
        """The recorded answer, or the recorded failure. Raises KeyConflict when this is not what was asked then, or
        was never asked."""
        row = self._rows.get(str(request.key))
        if row is None:
            raise KeyConflict(f"call {request.key} is not in the record, and a replay asks nobody")
        data = row.data
        for name, now in (("model", request.model), ("prompt", request.prompt)):
            if data.get(name) != now:
                raise KeyConflict(f"call {request.key} had another {name}: recorded {data.get(name)}, now {now}")
        if row.kind == "call.failed":
            raise _failure(data)
        return CalledModel(
            model=request.model,
            answer=data["answer"],
            value=data["value"],
            problems=tuple(data.get("problems", ())),
            usage=_usage(data.get("usage", {})),
            faults=(),
            pinned=dict(data.get("pinned", {})),
        )


def said(rows: Iterable[Event], ask: Event) -> tuple[str, dict[str, Any]] | None:
    """What a person said to the recorded ask of the same id, as a signal and its words for ``ask`` as it is now; None
    where the record has no such answer, or not all of it."""
    closed = [row for row in rows if row.kind == "ask.closed" and row.data.get("id") == ask.data["id"]]
    if not closed or closed[-1].data.get("choice") not in SAYABLE:
        return None
    answer = closed[-1].data
    by = {"by": answer.get("by", ""), "reason": answer.get("reason", "")}
    if answer["choice"] in ("approve", "reject"):
        return str(answer["choice"]), {"digest": ask.data.get("digest", ""), **by}
    return "answer", {"ask": ask.data["id"], "choice": answer["choice"], **by}


def _key(build: str, row: Event) -> CallKey:
    saga = task_saga_id(build, row.task) if row.task else build
    return CallKey(saga=saga, step=str(row.data["step"]), attempt=row.attempt, turn=int(row.data["turn"]))


def _failure(data: Mapping[str, Any]) -> ApplicationError:
    """As it failed then, at once: what was tried again is not tried again."""
    faults = list(data.get("faults", ())) or [{"kind": "ProviderUnavailable", "sentence": "it failed"}]
    return ApplicationError(faults[-1]["sentence"], faults, type=faults[-1]["kind"], non_retryable=True)


def _usage(raw: Mapping[str, Any]) -> Usage:
    """What it took then, for the log; nothing is paid."""
    return Usage(**{name: raw[name] for name in ("input_tokens", "output_tokens", "cost_micros") if name in raw})
