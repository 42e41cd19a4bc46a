"""A delivery as a branch of a trace: its steps one after the other, the windows of its watch below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.ports.store import Event
from domain.trace.delivery.series import point_of
from domain.trace.delivery.told import BEGAN, OVER
from domain.trace.node import Node

INSTANTS = {
    "lane.joined": "queued",
    "lane.refused": "refused",
    "risk.scored": "risk",
    "release.approved": "approved",
    "watch.undecided": "undecided",
    "release.promoted": "promoted",
}
"""Rows that take no time of their own."""
STEPS: Mapping[str, tuple[str, str]] = {
    "lane.granted": ("lane", "granted"),
    "delivery.snapshot": ("snapshot", "taken"),
    "artifact.built": ("artifact", "built"),
    "release.staged": ("staging", "healthy"),
    "integration.ran": ("integration", ""),
    "step.ran": ("step", ""),
    "release.started": ("production", "healthy"),
    "release.switched": ("switch", "switched"),
    "release.rolled_back": ("rollback", "done"),
}
"""Rows that end a step: its name, and its status where the row does not tell one."""
REFS = ("artifact", "digest", "log", "report", "commit")


def branch(events: Sequence[Event], *, asks: Sequence[Node], end: int | None) -> Node:
    """``events`` are the rows of one delivery in order, ``asks`` what it asked people; ``end`` (ms since 1970) is when
    its phase was over, None while it goes on."""
    began = next((event for event in events if event.kind == BEGAN), events[0])
    over = next((event for event in reversed(events) if event.kind == OVER), None)
    windows = [event for event in events if event.kind.startswith("watch.")]
    children = [*_steps(events, since=began.at), *asks]
    if windows:
        switched = next((e.at for e in reversed(events) if e.kind == "release.switched"), windows[0].at)
        children.append(_watch(windows, since=min(switched, windows[0].at), end=over.at if over else end))
    return Node(
        kind="delivery",
        name=f"release {began.data.get('release', '?')}",
        status=str(over.data.get("status", "")) if over else "running" if end is None else "ended",
        start=began.at,
        end=over.at if over else end,
        text=str(over.data.get("sentence", "")) if over else "",
        refs={"commit": commit} if (commit := _text(began, "commit")) else {},
        children=tuple(sorted(children, key=lambda node: node.start)),
    )


def _steps(events: Sequence[Event], *, since: int) -> list[Node]:
    nodes: list[Node] = []
    for event in events:
        if event.kind in INSTANTS and not event.kind.startswith("watch."):
            nodes.append(_node(event, kind="note", name=INSTANTS[event.kind], start=event.at))
        elif event.kind in STEPS:
            nodes.append(_node(event, kind=_kind(event.kind), name=STEPS[event.kind][0], start=since))
        if event.kind not in INSTANTS and event.kind != "watch.window":
            since = event.at
    return nodes


def _kind(kind: str) -> str:
    return {"integration.ran": "gates", "lane.granted": "lane"}.get(kind, "release")


def _node(event: Event, *, kind: str, name: str, start: int) -> Node:
    data = event.data
    step = data.get("name") if event.kind == "step.ran" else None
    status = ("green" if data["green"] else "red") if "green" in data else STEPS.get(event.kind, ("", ""))[1]
    refs = {ref: str(data[ref]) for ref in REFS if isinstance(data.get(ref), str) and data[ref]}
    return Node(
        kind=kind,
        name=f"step {step}" if step else name,
        status=status,
        start=start,
        end=event.at,
        text=_remark(event.kind, data),
        refs=refs,
    )


def _remark(kind: str, data: Mapping[str, Any]) -> str:
    match kind:
        case "risk.scored":
            return f"risk {data.get('risk', '?')}, confidence {data.get('confidence', '?')}: {data.get('action', '')}"
        case "release.approved":
            return f"by {data.get('by') or 'nobody'} ({data.get('how', '')})"
        case "artifact.built":
            return f"{data.get('files', '?')} files, {data.get('size', '?')} bytes"
        case "lane.joined":
            return str(data.get("reason") or f"position {data.get('position', '?')} of {data.get('lane', '')}")
        case "release.rolled_back":
            return f"to release {data.get('to', '?')}: {data.get('reason', '')}"
        case "release.switched":
            return f"from release {data.get('previous', '?')} to {data.get('release', '?')}"
    known = ("sentence", "reason", "url")
    return next((str(data[name]) for name in known if data.get(name)), "")


def _watch(events: Sequence[Event], *, since: int, end: int | None) -> Node:
    ended = next((event for event in reversed(events) if event.kind == "watch.ended"), None)
    children, start = [], since
    for event in events:
        if event.kind == "watch.window":
            children.append(_window(event, start=start))
            start = event.at
        elif event.kind in INSTANTS:
            children.append(_node(event, kind="note", name=INSTANTS[event.kind], start=event.at))
    return Node(
        kind="watch",
        name="watch",
        status=str(ended.data.get("kind", "")) if ended else "running" if end is None else "ended",
        start=since,
        end=ended.at if ended else end,
        text=str(ended.data.get("reason", "")) if ended else "",
        children=tuple(children),
    )


def _window(event: Event, *, start: int) -> Node:
    point = point_of(event.data)
    measured = ""
    if point is not None:
        arms = [("candidate", point.candidate)] + ([("baseline", point.baseline)] if point.baseline else [])
        measured = "; ".join(f"{name} {arm.failed} of {arm.asked} failed, p95 {arm.p95:.0f} ms" for name, arm in arms)
    reason = f"; {event.data['reason']}" if event.data.get("reason") else ""
    return Node(
        kind="window",
        name=str(event.data.get("number", "")),
        status=str(event.data.get("verdict", "")),
        start=start,
        end=event.at,
        text=f"{measured}{reason}",
    )


def _text(event: Event, name: str) -> str:
    value = event.data.get(name)
    return value if isinstance(value, str) else ""
