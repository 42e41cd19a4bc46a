"""One node of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.trace.spending import NOTHING, Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """``kind`` is build, phase, task, attempt, delivery, watch, or that of a step: call, apply, gates, merge, check,
    review, ask, land, lane, release, window, note. Times in ms since 1970; ``end`` None while it goes on. ``refs`` are
    digests and commits by what they are."""

    kind: str
    name: str
    status: str
    start: int
    end: int | None
    text: str = ""
    spent: Spending = NOTHING
    refs: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Node, ...] = ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, from the top."""
    yield node
    for child in node.children:
        yield from walk(child)
