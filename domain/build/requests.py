"""What starts a saga, decoded from plain JSON with a clear sentence for everything that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from domain.build.strategy import strategy
from domain.errors import InvalidInput, TooLarge, UnknownName
from domain.human.attributes import LONGEST_TAG, MOST_TAGS
from domain.money.budget import Budget
from domain.risk.matrix import AUTONOMOUS

MAX_SPEC_BYTES = 64_000
APPROVALS = ("plan", "change", "release")
"""What can be approved beforehand."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """The start input of a BuildSaga. ``project`` may be left out where the allowlist holds just one.

    ``allow_missing`` names isolations that the sandbox may do without on this machine ("memory", "pids"). ``approved``
    are approvals given beforehand ("plan", "change", "release"); ``unattended``: nobody answers, what would be asked is
    skipped. ``user`` is who pays. ``deliver``: what is landed is delivered too, where there is a target.

    ``resume`` is the token of a snapshot to start from, ``fork`` that this is wanted though the build it is of still
    runs; ``spec`` is left empty then. ``models`` replace the project's: "name" for every role, "role=name" for one.
    ``strategy`` names a way of working (domain/build/strategy.py). ``dry_run`` ends with the plan and what it would
    cost. ``until`` ends the build after that phase. ``tags`` are words to find it by.
    """

    spec: str = ""
    project: str = ""
    title: str = ""
    allow_missing: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    unattended: bool = False
    user: str = ""
    deliver: bool = True
    resume: str = ""
    fork: bool = False
    models: tuple[str, ...] = ()
    strategy: str = ""
    dry_run: bool = False
    until: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """The start input of a TaskSaga: references only. ``base`` is the build's head, ``base_ran`` its count of tests
    (-1: its runner cannot count); ``heartbeat``, ``model_seconds`` and ``test_seconds`` are seconds.

    Attempts are numbered from ``first`` on. ``reason``, ``report`` and ``change`` are what the first one is told of the
    task's earlier work. ``places`` is how many of the project's tasks may run at once (0: no limit).

    ``baseline`` is the digest of what each test does on ``base``. ``sets_up``: the project's dependencies are set up
    before the tests; ``packages`` are names that a person has allowed, ``trusted`` the
    commit whose manifests nobody has to. ``at`` (seconds since 1970) is where the times
    of its commits start from, so that the same task makes the same commits again; 0 is the saga's own start.
    ``weights`` are the project's own of the risk formula, none: as published.
    """

    build: str
    project: str
    task: str
    plan: str
    spec: str
    base: str
    base_ran: int
    attempts: int
    chain: tuple[str, ...]
    heartbeat: float
    output_tokens: int
    model_seconds: float
    test_seconds: float
    allow_missing: tuple[str, ...] = ()
    first: int = 1
    reason: str = ""
    report: str = ""
    change: str = ""
    user: str = ""
    places: int = 0
    budget: Budget = field(default_factory=Budget)
    paused: bool = False
    baseline: str = ""
    sets_up: bool = False
    packages: tuple[str, ...] = ()
    at: int = 0
    needs_rounds: int = 3
    setup_seconds: float = 0.0
    strategy: str = ""
    trusted: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """What a TaskSaga returns. ``status`` is "green" (``commit`` waits for its merge, ``ran`` of its tests ran, -1:
    cannot be counted) or "stuck" (``kind`` is the fault's class, ``sentence`` what a person is told).

    ``attempt`` is the last one's number. ``diff``, ``report`` and ``change`` are digests of the last attempt.
    ``action`` is the escalation matrix's word on green work ("autonomous", "draft", "person" or "ask"), and ``why``.
    ``baseline`` is what each test did on it (a digest), ``packages`` the names that nobody has allowed to be installed.
    """

    task: str
    commit: str
    ran: int
    attempt: int
    status: str = "green"
    base: str = ""
    kind: str = ""
    sentence: str = ""
    touched: tuple[str, ...] = ()
    model: str = ""
    diff: str = ""
    report: str = ""
    action: str = AUTONOMOUS
    why: str = ""
    baseline: str = ""
    packages: tuple[str, ...] = ()


def decode_build_request(value: Any) -> BuildRequest:
    """Raises InvalidInput or TooLarge with one sentence."""
    request = decode(BuildRequest, value)
    if not request.spec.strip() and not request.resume:
        raise InvalidInput("the spec is empty" if "spec" in value else "the field 'spec' is missing")
    if len(request.spec.encode()) > MAX_SPEC_BYTES:
        raise TooLarge(f"the spec has {len(request.spec.encode())} bytes, at most {MAX_SPEC_BYTES} are allowed")
    strategy(request.strategy)
    for name in request.approved:
        if name not in APPROVALS:
            raise UnknownName.among("approval", name, APPROVALS)
    if len(request.tags) > MOST_TAGS or any(not 0 < len(tag) <= LONGEST_TAG for tag in request.tags):
        raise InvalidInput(f"at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters are allowed")
    return request


def decode(kind: type[T], value: Any) -> T:
    """Decode a JSON object into a dataclass of str, int, float, bool, tuple[str, ...], Mapping[str, float] and such
    dataclasses.

    Raises InvalidInput.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(f"the input has to be one JSON object, not {_named(value)}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(map(str, value)) - set(known))
    if unknown:
        raise InvalidInput(f"unknown field {unknown[0]!r}; known: {', '.join(known)}")
    missing = [name for name, f in known.items() if _is_needed(f) and name not in value]
    if missing:
        raise InvalidInput(f"the field {missing[0]!r} is missing")
    hints = get_type_hints(kind)
    return kind(**{name: _typed(name, hints[name], item) for name, item in value.items()})


def title_of(request: BuildRequest) -> str:
    """The request's title, or the spec's first line without Markdown's marks; at most 100 characters."""
    first = next((line.strip("#*_ \t") for line in request.spec.splitlines() if line.strip("#*_ \t")), "untitled")
    return "".join(c if c.isprintable() else " " for c in request.title or first)[:100]


def _is_needed(known: Any) -> bool:
    return known.default is MISSING and known.default_factory is MISSING


def _typed(name: str, hint: Any, item: Any) -> Any:
    if NoneType in get_args(hint):
        return None if item is None else _typed(name, get_args(hint)[0], item)
    if isinstance(hint, type) and is_dataclass(hint):
        return decode(hint, item)
    if hint is bool and isinstance(item, bool):
        return item
    if hint is str and isinstance(item, str):
        return item
    if hint is int and isinstance(item, int) and not isinstance(item, bool):
        return item
    if hint is float and isinstance(item, int | float) and not isinstance(item, bool):
        return float(item)
    if hint == tuple[str, ...] and isinstance(item, list | tuple) and all(isinstance(i, str) for i in item):
        return tuple(item)
    if hint == Mapping[str, float] and isinstance(item, Mapping):
        return {str(key): _typed(f"{name}.{key}", float, each) for key, each in item.items()}
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    raise InvalidInput(f"the field {name!r} has to be {names.get(hint, 'a list of texts')}, not {_named(item)}")


def _named(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "a list")
