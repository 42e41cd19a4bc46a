"""Events in the order in which things happened, and those that a reset undid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.ports.store import Event
from domain.trace.rebuilding import Key

BEGINNINGS = ("build.started", "task.started", "delivery.phase")
"""What a saga notes first, in its first run."""


def key_of(event: Event) -> Key:
    """``(first_run, run, sequence)``."""
    return (event.first_run, event.run, event.sequence)


def in_order(events: Iterable[Event]) -> list[Event]:
    """Each event once, by workflow time; within one millisecond the first run comes before those that continue it."""
    unique = {key_of(event): event for event in events}
    return sorted(unique.values(), key=place_of)


def place_of(event: Event) -> tuple[int, bool, str, int]:
    """What ``in_order`` sorts by."""
    return (event.at, event.run != event.first_run, event.run, event.sequence)


def undone(events: Sequence[Event]) -> frozenset[Key]:
    """The rows that a reset of their saga went back behind: they happened, and count no more.

    A reset goes on in a new run with the sequence of the point it went back to, so rows of the runs before it from that
    sequence on are undone. A run that continues another one as new counts from 1 again and undoes nothing.
    """
    found: set[Key] = set()
    for runs in _chains(in_order(events)).values():
        standing: list[Event] = []
        for rows in runs.values():
            if _continues(rows[0], standing):
                standing = []
            lost = [row for row in standing if row.sequence >= rows[0].sequence]
            found.update(key_of(row) for row in lost)
            standing = [row for row in standing if row.sequence < rows[0].sequence] + rows
    return frozenset(found)


def _chains(ordered: Iterable[Event]) -> dict[str, dict[str, list[Event]]]:
    """Rows by first run and run, in the order in which the runs began."""
    chains: dict[str, dict[str, list[Event]]] = {}
    for event in ordered:
        chains.setdefault(event.first_run, {}).setdefault(event.run, []).append(event)
    for runs in chains.values():
        for rows in runs.values():
            rows.sort(key=lambda row: row.sequence)
    return chains


def _continues(first: Event, standing: Sequence[Event]) -> bool:
    return first.sequence == 1 and first.kind not in BEGINNINGS and bool(standing)
