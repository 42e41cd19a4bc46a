"""What an event tells of a step: its kind, name, status, a text for people, and where its contents lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from domain.money.usage import dollars
from domain.ports.store import Event
from domain.trace.node import Node
from domain.trace.spending import CALLS, NOTHING, logical_call, spending_of

REFS = ("prompt", "answer", "value", "diff", "log", "report", "commit", "onto", "plan", "findings", "digest", "spec")
INSTANTS = {
    "task.sent_back": "sent back",
    "task.stuck": "stuck",
    "task.skipped": "skipped",
    "task.blocked": "blocked",
    "task.waits": "waits for files",
    "build.paused": "paused",
    "build.resumed": "resumed",
    "build.continued": "continued",
    "build.restored": "went on from",
    "snapshot.taken": "snapshot",
    "snapshot.skipped": "no snapshot",
    "build.taken": "taken over",
    "limits.raised": "limits raised",
    "money.warned": "warning",
    "phase.anomaly": "more than usual",
    "answer.refused": "answer refused",
    "target.left": "target left",
}
"""Steps that take no time of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    kind: str
    name: str
    status: str
    text: str = ""


class Steps:
    """Reads steps out of the events of one build; it has to know all of them, in order."""

    def __init__(self, ordered: Iterable[Event]) -> None:
        self._paid: dict[tuple[object, ...], Event] = {}
        self._closings: dict[str, list[Event]] = {}
        for event in ordered:
            if event.kind in CALLS:
                self._paid.setdefault(logical_call(event), event)
            elif event.kind == "ask.closed":
                self._closings.setdefault(event.data["id"], []).append(event)

    def of(self, events: Iterable[Event], *, since: int) -> tuple[Node, ...]:
        """The steps of one scope, where one thing happens after the other: each begins when the one before ended."""
        found = []
        for event in events:
            node = self._step(event, since)
            if node is not None:
                found.append(node)
            if event.kind not in INSTANTS:
                since = event.at
        return tuple(found)

    def _step(self, event: Event, since: int) -> Node | None:
        if event.kind == "ask.opened":
            return self._ask(event)
        said = _said(event.kind, event.data)
        if said is None:
            return None
        paid = event.kind in CALLS and self._paid[logical_call(event)] is event
        return Node(
            kind=said.kind,
            name=said.name,
            status=said.status if paid or event.kind not in CALLS else f"{said.status} before",
            start=event.at if event.kind in INSTANTS else since,
            end=event.at,
            text=said.text,
            spent=spending_of(event) if paid else NOTHING,
            refs=_refs(event.data),
        )

    def _ask(self, event: Event) -> Node:
        data = event.data
        closed = next((c for c in self._closings.get(data["id"], ()) if c.at >= event.at), None)
        node = Node(
            kind="ask",
            name=f"{data['about']} {data['id']}",
            status="waiting",
            start=event.at,
            end=None,
            text=str(data.get("sentence", "")),
            refs=_refs(data),
        )
        if closed is None:
            return node
        said = f"{closed.data['choice']} by {closed.data.get('by') or 'nobody'}"
        reason = f": {closed.data['reason']}" if closed.data.get("reason") else ""
        return replace(node, status=str(closed.data["choice"]), end=closed.at, text=f"{node.text}; {said}{reason}")


def _refs(data: Mapping[str, Any]) -> dict[str, str]:
    return {name: data[name] for name in REFS if isinstance(data.get(name), str) and data[name]}


def _said(kind: str, data: Mapping[str, Any]) -> _Said | None:
    if kind in INSTANTS:
        return _Said(kind="note", name=INSTANTS[kind], status="", text=_remark(data))
    match kind:
        case "call.answered" | "call.failed":
            return _call(kind, data)
        case "change.applied":
            return _Said(kind="apply", name="change", status="applied", text=f"{data.get('files', '?')} files")
        case "change.refused":
            return _Said(kind="apply", name="change", status="refused", text=str(data["reason"]))
        case "gates.ran" | "build.base":
            name = "base" if kind == "build.base" else str(data.get("label", ""))
            return _Said(kind="gates", name=name, status=_colour(data), text=str(data.get("reason", "")))
        case "merge.tried":
            paths = ", ".join(map(str, data.get("conflicts", ())))
            onto = f"onto {str(data.get('onto', ''))[:12]}"
            return _Said(kind="merge", name=onto, status="conflict" if paths else "clean", text=paths)
        case "plan.refused":
            return _Said(kind="check", name="plan", status="refused", text=str(data["problems"][0]))
        case "build.planned":
            return _Said(kind="check", name="plan", status="usable", text=f"{len(data['tasks'])} tasks")
        case "review.ended":
            counts = ", ".join(f"{data.get(name, 0)} {name}" for name in ("high", "medium", "low"))
            weak = "; by the model that wrote it" if data.get("weak") else ""
            return _Said(kind="review", name=str(data.get("model", "review")), status="done", text=counts + weak)
        case "target.forwarded":
            return _Said(kind="land", name="target branch", status="forwarded", text=str(data["new"])[:12])
        case "task.merged":
            return _Said(kind="merge", name="into the build", status="done", text=str(data.get("commit", ""))[:12])
    return None


def _call(kind: str, data: Mapping[str, Any]) -> _Said:
    faults = [f"{fault['kind']} ({fault['sentence']})" for fault in data.get("faults", ())]
    problems = list(data.get("problems", ()))[:1]
    status = "failed" if kind == "call.failed" else "unfit" if problems else "answered"
    role = data.get("role") or data.get("step", "")
    return _Said(
        kind="call", name=f"{data.get('model', '')} ({role})", status=status, text="; ".join(faults + problems)
    )


def _colour(data: Mapping[str, Any]) -> str:
    return "green" if data.get("green") else "red"


def _remark(data: Mapping[str, Any]) -> str:
    known = ("token", "why", "sentence", "holder", "by", "choice", "reason", "fault", "commit")
    return "; ".join(str(data[name]) for name in known if data.get(name))


def costs(node: Node) -> str:
    """Tokens and cost of a node in a few words; "" where nothing was called."""
    spent = node.spent
    if not spent.calls:
        return ""
    unknown = f", {spent.unpriced} of unknown cost" if spent.unpriced else ""
    return f"{spent.input_tokens} + {spent.output_tokens} tokens  {dollars(spent.cost_micros)}{unknown}"
