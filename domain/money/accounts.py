"""The accounts that a call is counted on, and the limits that they have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from domain.money.budget import Budget, Payer


def day_of(at: int) -> str:
    """The UTC date of a moment in milliseconds since 1970, as in "2026-11-20"."""
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def build_account(build: str, *, task: str = "") -> str:
    """A build's account, or that of one of its tasks."""
    return f"task:{build}/{task}" if task else f"build:{build}"


def accounts_of(payer: Payer, *, day: str) -> tuple[str, ...]:
    """Every account that a call of that day is counted on, in the order in which they are locked."""
    return tuple(sorted(_named(payer, day).values()))


def limits_of(payer: Payer, budget: Budget, *, day: str) -> Mapping[str, int]:
    """The limit in micro-dollars of each account that has one."""
    limits = {name: getattr(budget, name) for name in _named(payer, day)}
    return {account: limits[name] for name, account in _named(payer, day).items() if limits[name] is not None}


def described(account: str) -> str:
    """An account's name for a person."""
    kind, _, rest = account.partition(":")
    first, _, second = rest.rpartition("/")
    match kind:
        case "task":
            return f"task {second} of {first}"
        case "day":
            return f"project {first} on {second} (UTC)"
        case "build":
            return rest
    return f"{kind} {rest}"


def _named(payer: Payer, day: str) -> dict[str, str]:
    """By the name of its limit in ``Budget``."""
    accounts = {
        "task": build_account(payer.build, task=payer.task) if payer.task else "",
        "build": build_account(payer.build),
        "project": f"project:{payer.project}",
        "user": f"user:{payer.user}" if payer.user else "",
        "day": f"day:{payer.project}/{day}",
    }
    return {name: account for name, account in accounts.items() if account}
