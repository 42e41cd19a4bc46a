"""Snapshots: the token that names one, what the log tells of it, and what of it another build goes on with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.build.names import check_build_name
from domain.errors import InvalidInput, UnknownName
from domain.flow.board import ASKING, RUNNING, WAITING, WRITTEN
from domain.ports.store import Event
from domain.risk.matrix import AUTONOMOUS
from domain.trace.order import in_order

TAKEN = "snapshot.taken"
ROLES = ("reasoning", "coding", "validation")
MOST_DIGITS = 9
MOST_LISTED = 20

_OWN: Mapping[str, Any] = {
    "paused": False,
    "asked": {},
    "undo": [],
    "delivering": False,
    "delivered": {},
    "snapshots": 0,
    "parent": "",
    "carried_micros": 0,
    "carried_calls": 0,
}
"""What belongs to the build that the snapshot is of, as a new build has it."""
_AT_WORK = (RUNNING, WRITTEN, ASKING)
_ANEW: Mapping[str, Any] = {
    "status": WAITING,
    "commit": "",
    "base": "",
    "kind": "",
    "sentence": "",
    "action": AUTONOMOUS,
    "why": "",
    "packages": [],
}
"""A task that was at work begins another attempt: its earlier commits were of the other build, and are not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One as the log tells it. ``after`` is the phase that had ended, ``phase`` the next, ``state`` the digest of what
    was carried; ``spent`` (micro-dollars) and ``calls`` with what the build had carried over; ``at`` ms since 1970."""

    token: str
    build: str
    number: int
    after: str
    phase: str
    state: str
    base: str
    head: str
    plan: str
    spent: int
    calls: int
    at: int


def token_of(build: str, number: int) -> str:
    """``<build>@<number>``."""
    return f"{build}@{number}"


def read_token(token: str) -> tuple[str, int]:
    """The build and the number that a token names. Raises InvalidInput for what is no token."""
    build, _, number = token.strip().rpartition("@")
    if not build or not (number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
        raise InvalidInput(
            f"{token[:120]!r} is no snapshot's token: it reads BUILD@NUMBER, as in build-notes-1@2; "
            "`mendwork snapshots BUILD` lists them"
        )
    return check_build_name(build), int(number)


def taken_in(events: Iterable[Event]) -> tuple[Snapshot, ...]:
    """A build's snapshots by number. A number that a reset took again stands for the newer one."""
    found = {int(event.data["number"]): _snapshot(event) for event in in_order(events) if event.kind == TAKEN}
    return tuple(found[number] for number in sorted(found))


def named(build: str, number: int, snapshots: Sequence[Snapshot]) -> Snapshot:
    """The snapshot of that number. Raises InvalidInput with those that there are."""
    for each in snapshots:
        if each.number == number:
            return each
    if not snapshots:
        raise InvalidInput(f"{build} has no snapshot to go on from: none was taken yet")
    listed = ", ".join(f"{each.token} (next: {each.phase})" for each in snapshots[-MOST_LISTED:])
    raise InvalidInput(f"{build} has no snapshot {number}; there are {listed}")


def for_another_build(state: Mapping[str, Any]) -> dict[str, Any]:
    """What another build goes on with: ``state`` without what was the old build's own.

    Tasks that were at work wait again and their attempts stay counted, so that no key is used twice. What a landing
    left in the user's repository is kept only where nothing but its delivery is to come.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get("admitted"), Mapping):
        raise InvalidInput("the snapshot holds no state of a build that was admitted")
    carried = {**state, **_OWN, "book": {"open": {}, "closed": [], "early": [], "answers": {}}}
    tasks = {name: dict(task) for name, task in state.get("tasks", {}).items()}
    attempts = {name: int(task.get("attempt", 0)) for name, task in tasks.items()}
    used = {name: int(number) for name, number in state.get("used", {}).items()}
    carried["used"] = used | {name: max(number, used.get(name, 0)) for name, number in attempts.items()}
    carried["tasks"] = {
        name: {**task, **_ANEW} if task.get("status") in _AT_WORK else task for name, task in tasks.items()
    }
    if state.get("phase") != "deliver":
        carried |= {"branch": "", "diff": ""}
    return carried


def with_models(admitted: Mapping[str, Any], models: Iterable[str], *, known: Collection[str]) -> dict[str, Any]:
    """``admitted`` with other chains of models: "name" for every role, "role=name" for one and over the others; several
    are tried in the order in which they are given. Raises UnknownName with the roles or models that there are."""
    every: list[str] = []
    one: dict[str, list[str]] = {}
    for text in models:
        role, mark, name = text.partition("=") if "=" in text and text not in known else ("", "", text)
        if mark and role not in ROLES:
            raise UnknownName.among("role", role[:100], ROLES)
        if name not in known:
            raise UnknownName.among("model", name[:100], known)
        (one.setdefault(role, []) if mark else every).append(name)
    chains = {role: list(dict.fromkeys(one.get(role, every))) for role in ROLES}
    return {**admitted, **{role: chain for role, chain in chains.items() if chain}}


def _snapshot(event: Event) -> Snapshot:
    data = event.data
    number = int(data["number"])
    return Snapshot(
        token=token_of(event.build, number),
        build=event.build,
        number=number,
        after=str(data.get("after", "")),
        phase=str(data.get("phase", "")),
        state=str(data.get("state", "")),
        base=str(data.get("base", "")),
        head=str(data.get("head", "")),
        plan=str(data.get("plan", "")),
        spent=int(data.get("spent") or 0),
        calls=int(data.get("calls") or 0),
        at=event.at,
    )
