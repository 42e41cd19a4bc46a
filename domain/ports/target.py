"""Deploy targets: releases that run side by side, and the traffic that goes to one of them.

A *site* is a project's environment ("staging" or "production") behind one address. A *unit* is one release on a site,
with a process and an address of its own: the one that traffic goes to, a candidate, or the old one as the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.kpi.probe import Probe

STAGING, PRODUCTION = "staging", "production"

ABSENT, STARTING, HEALTHY, UNHEALTHY, DEAD = "absent", "starting", "healthy", "unhealthy", "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """``port`` is where its proxy listens on loopback; 0: one is chosen when it first gets traffic, and kept."""

    project: str
    environment: str
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Release ``release`` (from 1) of a project on one of its environments."""

    project: str
    environment: str
    release: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything that a unit is made of. ``content`` is the artefact, a tar, and ``artifact`` its SHA-256; ``config``
    is the digest of what else it runs with. ``environment`` holds secrets: neither may be shown."""

    unit: Unit
    artifact: str
    config: str
    run: tuple[str, ...]
    health: Probe
    content: bytes = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStatus:
    """``state`` is one of the five above; ``url`` its own address ("" when absent). ``kind`` is the class of what is
    wrong (PortTaken, ReleaseDied, ReleaseSilent, ...; "" when nothing is), ``sentence`` tells it, ``log`` is the end of
    what it printed: untrusted text, at most 4,000 characters."""

    state: str
    url: str = ""
    artifact: str = ""
    config: str = ""
    kind: str = ""
    sentence: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What traffic of a site goes to. ``url`` is the site's address."""

    release: int
    artifact: str
    config: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One look from outside, through the site's address. ``release`` is which release answered (0: none did)."""

    ok: bool
    release: int = 0
    status: int = 0
    sentence: str = ""


class Units(Protocol):
    """Releases that run. Every method may be repeated after a crash and then finds what it did before."""

    async def trigger(self, order: Order) -> None:
        """Unpack and start a unit, and return without waiting for it to be healthy. One that is there with the same
        artifact and config is kept and started if it does not run; the same unit with others is refused: KeyConflict.

        Raises ResourceShort (disk full; nothing half is left), PortTaken, TargetUnavailable, InvalidInput for an
        artefact that leads outside its folder, IsolationMissing.
        """
        ...

    async def poll(self, unit: Unit) -> UnitStatus:
        """How a unit is now: one look at its process and its health check. Raises TargetUnavailable."""
        ...

    async def remove(self, unit: Unit, *, drain: float = 0.0) -> bool:
        """Stop a unit and remove its folder; return whether nothing of it is left. Nothing there is success. Requests
        under way have ``drain`` seconds to end. Raises KeyConflict when the site's traffic goes to it,
        TargetUnavailable."""
        ...

    async def command(self, unit: Unit, argv: tuple[str, ...], *, key: str, seconds: float) -> UnitStatus:
        """Run a command once, isolated as the unit is and with its environment; ``state`` is "healthy" when it exited
        with 0, else "dead". ``key`` names it: a repeat of one that ended returns how it ended."""
        ...


class Traffic(Protocol):
    """What a site's address leads to. It keeps serving whatever becomes of Mendwork."""

    async def current(self, site: Site) -> Live | None:
        """What traffic goes to, None when the site has no release. Raises TargetUnavailable."""
        ...

    async def switch(self, site: Site, to: int, *, expected: int) -> Live:
        """Lead traffic to release ``to``, at once and without losing a request; requests under way end where they are.
        Already there is success. ``expected`` is where it led before (0: nowhere).

        Raises Overtaken when it leads somewhere else, ReleaseDied or ReleaseSilent when ``to`` does not serve,
        PortTaken, TargetUnavailable.
        """
        ...

    async def roll_back(self, site: Site, to: int) -> Live | None:
        """Lead traffic back to release ``to`` wherever it leads now, starting that unit from its own folder, with its
        own configuration, when it does not run. 0 closes the site: it had no release before, and None is returned.

        Raises ReleaseMissing when the folder is gone, ReleaseDied, ReleaseSilent, TargetUnavailable.
        """
        ...

    async def health(self, site: Site, probe: Probe) -> Answered:
        """Look from outside, as a user would: through the site's address. Never raises for a service that fails."""
        ...


class Target(Protocol):
    """One place where releases run."""

    def missing(self) -> Mapping[str, str]:
        """What cannot be had here: name to a sentence with the cure. Nothing can be delivered while it is not empty."""
        ...

    @property
    def units(self) -> Units: ...

    @property
    def traffic(self) -> Traffic: ...
