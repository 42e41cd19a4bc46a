"""Hard limits of money and calls, and the accounts that they are counted on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits in micro-dollars; None is no limit. ``task`` and ``build`` are for one of them, ``project`` and ``user``
    for all time, ``day`` for one project's UTC day. ``calls`` limits the calls of one task."""

    task: int | None = 2_000_000
    build: int | None = 10_000_000
    project: int | None = None
    user: int | None = None
    day: int | None = 50_000_000
    calls: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Whom a call is charged to. ``task`` is "" for the build's own calls (planning, review); ``phase`` and ``role``
    say what it was for, for ``mendwork cost``."""

    project: str
    build: str
    task: str = ""
    user: str = ""
    phase: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An account's state in micro-dollars. ``held`` is reserved for running calls, ``unknown`` for calls that were lost
    in flight and may have been billed, ``written_off`` for those that nobody could reconcile in time."""

    settled: int = 0
    held: int = 0
    unknown: int = 0
    written_off: int = 0
    calls: int = 0

    @property
    def used(self) -> int:
        """What counts against a limit: never less than the provider's bill."""
        return self.lasting + self.held

    @property
    def lasting(self) -> int:
        """What goes on counting when every running call turns out to cost nothing."""
        return self.settled + self.unknown + self.written_off

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            settled=self.settled + other.settled,
            held=self.held + other.held,
            unknown=self.unknown + other.unknown,
            written_off=self.written_off + other.written_off,
            calls=self.calls + other.calls,
        )

    def __sub__(self, other: Spent) -> Spent:
        return Spent(
            settled=self.settled - other.settled,
            held=self.held - other.held,
            unknown=self.unknown - other.unknown,
            written_off=self.written_off - other.written_off,
            calls=self.calls - other.calls,
        )
