"""Who needs blobs, and for how long: builds, snapshots and releases, each by the retention of its project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.keeping.retention import Retention
from domain.ports.releases import OPEN, PROMOTED, UNCLEAR

BUILD, SNAPSHOT, RELEASE = "build", "snapshot", "release"
DAY_MS = 86_400_000
SKEW_MS = 3_600_000
"""Two machines' clocks are at most so far apart."""
LAST_RELEASES = 10
"""How many of a project's newest releases can always be gone back to."""
_DEFAULT = Retention()


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """``name`` is a build, a snapshot's token or ``project#number`` of a release. Times are ms since 1970; ``ended`` is
    0 while it is open (a snapshot ends as it is taken).

    ``state`` changes whenever its rows in the store do. ``number``, ``status`` and ``previous`` are a release's,
    ``owner`` is the build that it, or the snapshot, is of.
    """

    name: str
    kind: str
    project: str
    started: int
    ended: int
    state: str = ""
    number: int = 0
    status: str = ""
    previous: int = 0
    owner: str = ""


def kept(holders: Iterable[Holder], *, now: int, retention: Mapping[str, Retention]) -> tuple[Holder, ...]:
    """Those that still need what they name. Projects that ``retention`` does not know keep theirs as by default.

    An open release keeps its build, too: its delivery may still read what the build wrote.
    """
    known = list(holders)
    reachable = _reachable(known)
    opened = {each.owner for each in known if each.kind == RELEASE and not each.ended}

    def needed(holder: Holder) -> bool:
        days = retention.get(holder.project, _DEFAULT)
        if holder.kind == SNAPSHOT:
            return holder.started > now - _ms(days.snapshots) - DAY_MS  # somebody may just go on from it
        recent = holder.ended == 0 or holder.ended > now - _ms(days.builds)
        if holder.kind == RELEASE:
            return recent or (holder.project, holder.number) in reachable
        return recent or holder.name in opened

    return tuple(holder for holder in known if needed(holder))


def oldest_open(holders: Iterable[Holder]) -> Holder | None:
    """The open build or release that began first: what was written since may be its, and not be named yet."""
    return min((h for h in holders if not h.ended), key=lambda h: (h.started, h.name), default=None)


def settled_before(holders: Iterable[Holder], *, now: int, grace: int = DAY_MS) -> int:
    """What was written before this moment (ms) is named by now, or never will be."""
    oldest = oldest_open(holders)
    return now - grace if oldest is None else min(now - grace, oldest.started - SKEW_MS)


def idle_before(days: float, *, now: int, began: int) -> int:
    """What was last used before this moment (ms) is past ``days``, and no open build used it: the oldest one began at
    ``began`` (0: none is open)."""
    past = now - _ms(days)
    return min(past, began - SKEW_MS) if began else past


def _reachable(holders: Iterable[Holder]) -> set[tuple[str, int]]:
    """Releases that a lane may go back to: the last ones, the one that serves and the one before it."""
    projects: dict[str, list[Holder]] = {}
    for holder in holders:
        if holder.kind == RELEASE:
            projects.setdefault(holder.project, []).append(holder)
    found: set[tuple[str, int]] = set()
    for project, releases in projects.items():
        newest = sorted(releases, key=lambda release: release.number, reverse=True)
        numbers = {release.number for release in newest[:LAST_RELEASES]}
        serving = next((release for release in newest if release.status == PROMOTED), None)
        undecided = [release for release in newest if release.status in (OPEN, UNCLEAR)]
        for release in (*([serving] if serving else []), *undecided):
            numbers |= {release.number, release.previous}
        found |= {(project, number) for number in numbers}
    return found


def _ms(days: float) -> int:
    return int(days * DAY_MS)
