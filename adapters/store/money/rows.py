"""A call's row as the domain's values, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from adapters.store.content import canonical
from domain.errors import Overtaken
from domain.money.accounts import accounts_of, day_of, limits_of
from domain.money.budget import Payer
from domain.money.charge import Charge
from domain.money.usage import Usage
from domain.ports.language_model import CallKey
from domain.ports.store import BegunCall, CallTry, FailedCall, RecordedCall

Values = dict[str, Any]


def accounts_in(row: Row[Any]) -> tuple[str, ...]:
    """The accounts that the call is counted on."""
    return accounts_of(payer_in(row), day=row.day)


def payer_in(row: Row[Any]) -> Payer:
    return Payer(
        project=row.project, build=row.build, task=row.task, user=row.user_name, phase=row.phase, role=row.role
    )


def charge_in(row: Row[Any]) -> Charge:
    return Charge(bound=row.bound or 0, money=row.money, settled=row.settled)


def charged(charge: Charge) -> Values:
    """The columns of a charge that change."""
    return {"money": charge.money, "settled": charge.settled}


def limits_in(row: Row[Any]) -> Mapping[str, int]:
    limits: Mapping[str, int] = json.loads(row.limits)
    return limits


def warnings_in(row: Row[Any]) -> tuple[str, ...]:
    return tuple(json.loads(row.warnings))


def begun(key: CallKey, call: BegunCall) -> Values:
    """All columns of a new try but its number and its price."""
    payer, day = call.payer, day_of(call.at)
    return {
        "key": str(key),
        "build": payer.build,
        "request": call.request,
        "model": call.model,
        "state": "running",
        "fault": "",
        "project": payer.project,
        "task": payer.task,
        "user_name": payer.user,
        "phase": payer.phase,
        "role": payer.role,
        "attempt": key.attempt,
        "at": call.at,
        "day": day,
        "bound": call.bound,
        **charged(Charge(bound=call.bound or 0)),
        "limits": canonical("limits", dict(limits_of(payer, call.budget, day=day))),
    }


def ended(outcome: RecordedCall | FailedCall, *, overtaken: bool) -> Values:
    """The columns that say how a try ended, but for its charge."""
    if isinstance(outcome, FailedCall):
        state = "unknown" if outcome.bill is None else "failed"
        return {"state": state, "fault": outcome.fault, **used(outcome.bill.usage if outcome.bill else None)}
    values = {"model": outcome.model, "pinned": canonical("pinned", dict(outcome.pinned)), **used(outcome.usage)}
    if overtaken:
        return values | {"state": "failed", "fault": Overtaken.__name__}
    return values | {
        "state": "answered",
        "fault": "",
        "answer": outcome.answer,
        "value": outcome.value,
        "problems": canonical("problems", list(outcome.problems)),
    }


def used(usage: Usage | None) -> Values:
    if usage is None:
        return {"input_tokens": None, "output_tokens": None, "cost_micros": None}
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_micros": usage.cost_micros,
    }


def recorded_in(row: Row[Any]) -> RecordedCall:
    return RecordedCall(
        request=row.request,
        model=row.model,
        answer=row.answer,
        value=row.value,
        problems=tuple(json.loads(row.problems)),
        usage=Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_micros=row.cost_micros),
        pinned=json.loads(row.pinned),
        bound=row.bound,
        warnings=warnings_in(row),
    )


def try_in(row: Row[Any]) -> CallTry:
    usage = None
    if row.input_tokens is not None:
        usage = Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_micros=row.cost_micros)
    return CallTry(
        key=row.key,
        build=row.build,
        number=row.number,
        model=row.model,
        state=row.state,
        fault=row.fault,
        usage=usage,
        payer=payer_in(row),
        attempt=row.attempt,
        at=row.at,
        charge=charge_in(row),
        price=row.price,
        pinned=json.loads(row.pinned),
    )
