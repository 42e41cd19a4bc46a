"""Which task may start, wait or merge: the DAG, the places and the files' locks, as pure functions of the board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from domain.risk.matrix import AUTONOMOUS

WAITING, RUNNING, WRITTEN, ASKING = "waiting", "running", "written", "asking"
MERGED, SKIPPED, BLOCKED = "merged", "skipped", "blocked"
ENDED = frozenset((MERGED, SKIPPED, BLOCKED))
AT_WORK = frozenset((RUNNING, WRITTEN, ASKING))
MOST_TRIED = 5
MOST_SHOWN = 40


@dataclass(slots=True, kw_only=True)
class TaskState:
    """One task of the plan, as the build has it.

    ``attempt`` is its last logical attempt (never counted back, so that keys stay unique), ``sent_back`` how often its
    green work was refused after all. ``reason``, ``report`` and ``change`` (digests) are what the next attempt is told.
    ``locks`` are files that it touched without declaring them. ``kind`` and ``sentence`` say why it is stuck,
    ``action`` and ``why`` what the escalation matrix says of its green work. ``base`` is what ``commit`` was written
    on, ``packages`` are names that it wants installed and nobody knows.
    """

    status: str = WAITING
    attempt: int = 0
    sent_back: int = 0
    asked: int = 0
    commit: str = ""
    reason: str = ""
    report: str = ""
    change: str = ""
    kind: str = ""
    sentence: str = ""
    action: str = AUTONOMOUS
    why: str = ""
    base: str = ""
    packages: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    tried: list[dict[str, str]] = field(default_factory=list)

    def remember(self, **tried: str) -> None:
        """Keep what was tried, the last few, for the person who is asked."""
        self.tried = [*self.tried, tried][-MOST_TRIED:]


_FRESH: Mapping[str, Any] = asdict(TaskState())
_OF_THE_WAY = ("tried", "base", "change", "report", "locks")
"""What a task needs until it is merged."""


def carried(state: TaskState) -> dict[str, Any]:
    """What a new run, or another build, needs of a task: a thousand of them go into one payload. What is as it was in
    the beginning is left out, and of a merged task how it came to be."""
    gone = _OF_THE_WAY if state.status == MERGED else ()
    kept = {name: value for name, value in asdict(state).items() if value != _FRESH[name] and name not in gone}
    return {"status": state.status, **kept}


def shown(states: Mapping[str, TaskState]) -> tuple[str, ...]:
    """A line for each task; of very many the totals, and those at work."""
    if len(states) <= MOST_SHOWN:
        return tuple(f"{name}: {state.status}" for name, state in states.items())
    totals = Counter(state.status for state in states.values())
    named = [f"{name}: {state.status}" for name, state in states.items() if state.status in AT_WORK]
    return (", ".join(f"{number} {status}" for status, number in sorted(totals.items())), *named[:MOST_SHOWN])


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A task's place in the DAG, and the files that it declares (a folder stands for what is below it)."""

    id: str
    depends_on: tuple[str, ...]
    files: tuple[str, ...]


def block(nodes: Iterable[Node], states: Mapping[str, TaskState]) -> dict[str, str]:
    """Tasks that can never start any more, each with the dependency that is missing; in the plan's order."""
    gone = {name for name, state in states.items() if state.status in (SKIPPED, BLOCKED)}
    found: dict[str, str] = {}
    for node in nodes:  # in an order in which they can run: one pass is enough
        missing = next((d for d in node.depends_on if d in gone), None)
        if missing is not None and states[node.id].status == WAITING:
            found[node.id] = missing
            gone.add(node.id)
    return found


def startable(nodes: Iterable[Node], states: Mapping[str, TaskState], *, limit: int) -> tuple[str, ...]:
    """Tasks to start now: dependencies merged, declared files free, at most ``limit`` at work. In the plan's order."""
    listed = tuple(nodes)
    at_work = [node for node in listed if states[node.id].status in (RUNNING, WRITTEN)]
    held = {path for node in at_work for path in _held(node, states[node.id])}
    chosen: list[str] = []
    for node in listed:
        if len(at_work) + len(chosen) >= limit:
            break
        if states[node.id].status != WAITING or any(states[d].status != MERGED for d in node.depends_on):
            continue
        wanted = _held(node, states[node.id])
        if not overlap(wanted, held):
            chosen.append(node.id)
            held |= set(wanted)
    return tuple(chosen)


def undeclared(node: Node, touched: Iterable[str]) -> tuple[str, ...]:
    """The paths that a task touched and did not declare."""
    return tuple(path for path in touched if not overlap((path,), node.files))


def must_wait(node: Node, paths: Iterable[str], nodes: Iterable[Node], states: Mapping[str, TaskState]) -> str | None:
    """The task that holds one of ``paths`` and is still being written. One that is written itself is not waited for:
    two that wait for each other would wait for ever, and the second merge finds out."""
    wanted = tuple(paths)
    for other in nodes:
        state = states[other.id]
        if other.id != node.id and state.status == RUNNING and overlap(wanted, _held(other, state)):
            return other.id
    return None


def overlap(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a path of one is, holds or lies in a path of the other."""
    left, right = {p.rstrip("/") for p in some}, {p.rstrip("/") for p in others}
    return bool(left & right) or _inside(left, right) or _inside(right, left)


def _inside(paths: set[str], folders: set[str]) -> bool:
    return any(above in folders for path in paths for above in _above(path))


def _above(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:n]) for n in range(1, len(parts)))


def _held(node: Node, state: TaskState) -> tuple[str, ...]:
    return (*node.files, *state.locks)
