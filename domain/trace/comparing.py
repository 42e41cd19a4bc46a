"""Two builds beside each other: what each has come to, and what differs between two changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.ports.store import Event
from domain.review.diff import diff_parts
from domain.trace.order import in_order
from domain.trace.parts import BuildDetails

VERDICT = ("green", "reason", "ran", "new", "lost", "fixed", "known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two. ``gates`` is the last verdict on the build's own state, or on its last attempt while nothing is
    merged; ``findings`` counts those of the last review. ``millis`` is wall time, until now for one that runs."""

    build: str
    title: str
    parent: str
    base: str
    head: str
    status: str
    phase: str
    models: tuple[str, ...]
    tasks: Mapping[str, str]
    attempts: int
    gates: Mapping[str, Any]
    findings: Mapping[str, int]
    millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One file that differs; lines ``added`` and ``removed`` from the left to the right."""

    path: str
    added: int
    removed: int


def side_of(details: BuildDetails, events: Iterable[Event], *, now: int) -> Side:
    """What the log tells of one build; ``now`` in ms since 1970."""
    ordered = in_order(events)
    models = [str(event.data.get("model", "")) for event in ordered if event.kind == "call.answered"]
    review = details.reviews[-1] if details.reviews else {}
    return Side(
        build=details.build,
        title=details.title,
        parent=details.parent,
        base=details.base,
        head=details.head,
        status=details.status,
        phase=details.phase,
        models=tuple(dict.fromkeys(filter(None, models))),
        tasks={name: task.status for name, task in details.tasks.items()},
        attempts=sum(len(task.attempts) for task in details.tasks.values()),
        gates=_gates(ordered),
        findings={name: int(review.get(name) or 0) for name in ("high", "medium", "low")} if review else {},
        millis=max(0, (details.ended or now) - details.started),
    )


def changed(diff: str) -> tuple[Changed, ...]:
    """What a diff of git's touches, file by file."""
    return tuple(_counted(part.path, part.text) for part in diff_parts(diff))


def between(left: str, right: str) -> str:
    """What differs between two changes, where only their diffs are known: a diff of the parts of each file."""
    before, after = (_by_path(diff) for diff in (left, right))
    texts = []
    for path in dict.fromkeys((*before, *after)):
        old, new = before.get(path, ""), after.get(path, "")
        if old != new:
            lines = difflib.unified_diff(
                old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
            )
            text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
            texts.append(f"diff --git a/{path} b/{path}\n{text}")
    return "".join(texts)


def _by_path(diff: str) -> dict[str, str]:
    """What changed in every file, without the lines that name it; several changes of one file after each other."""
    found: dict[str, str] = {}
    for part in diff_parts(diff):
        found[part.path] = found.get(part.path, "") + (_hunks(part.text) or part.text)
    return found


def _hunks(text: str) -> str:
    """ "" of a part that is no text's: a new mode, a binary file."""
    return text[text.find("\n@@") + 1 :] if "\n@@" in text else ""


def _counted(path: str, text: str) -> Changed:
    body = _hunks(text).splitlines()
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return Changed(path=path, added=added, removed=removed)


def _gates(ordered: Sequence[Event]) -> dict[str, Any]:
    ran = [event for event in ordered if event.kind in ("gates.ran", "build.base")]
    own = [event for event in ran if not event.attempt]
    merged = [event for event in own if event.kind == "gates.ran"]
    last = (merged or [event for event in ran if event.kind == "gates.ran"] or own)[-1:]
    return {name: event.data[name] for event in last for name in VERDICT if name in event.data}
