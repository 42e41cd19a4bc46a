"""What starts a saga, decoded from plain JSON with a clear sentence for everything that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, get_type_hints

from domain.errors import InvalidInput, TooLarge

MAX_SPEC_BYTES = 64_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """The start input of a BuildSaga. ``project`` may be left out where the allowlist holds just one.

    ``allow_missing`` names isolations that the sandbox may do without on this machine ("memory", "pids").
    """

    spec: str
    project: str = ""
    title: str = ""
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """The start input of a TaskSaga: references only. ``base`` is the build's head, ``base_ran`` its count of tests
    (-1: its runner cannot count); ``heartbeat``, ``model_seconds`` and ``test_seconds`` are seconds."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """What a TaskSaga returns: ``commit`` is the build's new head, ``ran`` its tests (-1: cannot be counted)."""

    task: str
    commit: str
    ran: int
    attempts: int


def decode_build_request(value: Any) -> BuildRequest:
    """Raises InvalidInput or TooLarge with one sentence."""
    request = decode(BuildRequest, value)
    if not request.spec.strip():
        raise InvalidInput("the spec is empty")
    if len(request.spec.encode()) > MAX_SPEC_BYTES:
        raise TooLarge(f"the spec has {len(request.spec.encode())} bytes, at most {MAX_SPEC_BYTES} are allowed")
    return request


def decode(kind: type[T], value: Any) -> T:
    """Decode a JSON object into a flat dataclass of str, int, float and tuple[str, ...]. Raises InvalidInput."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"the start input has to be one JSON object, not {_named(value)}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(map(str, value)) - set(known))
    if unknown:
        raise InvalidInput(f"unknown field {unknown[0]!r}; known: {', '.join(known)}")
    missing = [name for name, f in known.items() if f.default is MISSING and name not in value]
    if missing:
        raise InvalidInput(f"the field {missing[0]!r} is missing")
    hints = get_type_hints(kind)
    return kind(**{name: _typed(name, hints[name], item) for name, item in value.items()})


def title_of(request: BuildRequest) -> str:
    """The request's title, or the spec's first line without Markdown's marks; at most 100 characters."""
    first = next((line.strip("#*_ \t") for line in request.spec.splitlines() if line.strip("#*_ \t")), "untitled")
    return "".join(c if c.isprintable() else " " for c in request.title or first)[:100]


def _typed(name: str, hint: Any, item: Any) -> Any:
    if hint is str and isinstance(item, str):
        return item
    if hint is int and isinstance(item, int) and not isinstance(item, bool):
        return item
    if hint is float and isinstance(item, int | float) and not isinstance(item, bool):
        return float(item)
    if hint == tuple[str, ...] and isinstance(item, list | tuple) and all(isinstance(i, str) for i in item):
        return tuple(item)
    wanted = {str: "a text", int: "a whole number", float: "a number"}.get(hint, "a list of texts")
    raise InvalidInput(f"the field {name!r} has to be {wanted}, not {_named(item)}")


def _named(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "a list")
