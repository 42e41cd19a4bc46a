"""What the record of releases tells: to a lane that starts anew, and of a project's luck with its deliveries."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from domain.delivery.lane_state import DELIVER, MOST_HISTORY, ROLLBACK, Freeze, Place, Shipped
from domain.ports.releases import OPEN, PROMOTED, ROLLED_BACK, UNCLEAR, Release
from domain.risk.evidence import Past

MOST_PAST = 20
LOOKED_AT = 100
"""How many of the newest releases are looked at, whatever they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """``open`` are the releases under way whose saga runs, lowest number first; ``history`` oldest first."""

    current: Shipped | None = None
    history: tuple[Shipped, ...] = ()
    frozen: Freeze | None = None
    open: tuple[Place, ...] = ()


def recall(releases: Sequence[Release], *, running: Container[str]) -> Recalled:
    """``releases`` newest first; ``running`` are the sagas that run.

    Frozen when the newest release that production saw was taken out of it, or left it unclear: whether a person has
    acknowledged that is not in the record, so it is asked again.
    """
    seen = [release for release in releases if release.status in (PROMOTED, ROLLED_BACK, UNCLEAR)]
    taken = taken_back(releases)
    current = _led_back_to(seen) or next((r for r in seen if _serves(r) and r.number not in taken), None)
    under_way = sorted((r for r in releases if r.status == OPEN and r.saga in running), key=lambda r: r.number)
    return Recalled(
        current=_shipped(current) if current else None,
        history=tuple(_shipped(release) for release in reversed(seen[:MOST_HISTORY])),
        frozen=None if not seen or _serves(seen[0]) else _freeze(seen[0]),
        open=tuple(Place(saga=r.saga, release=r.number, kind=r.kind, commit=r.commit) for r in under_way),
    )


def _led_back_to(seen: Sequence[Release]) -> Release | None:
    """The release that the newest rollback led to, when nothing was promoted since."""
    newest = next((r for r in seen if _serves(r) or (r.kind == ROLLBACK and r.status == ROLLED_BACK)), None)
    proof = newest.record.get("proof") if newest is not None and newest.kind == ROLLBACK else None
    to = proof.get("release") if isinstance(proof, Mapping) else None
    return next((r for r in seen if r.number == to and r.kind == DELIVER), None)


def past(releases: Sequence[Release]) -> Past:
    """The last deliveries that are over, from ``releases`` newest first, and how many of them failed."""
    taken = taken_back(releases)
    over = [r for r in releases if r.kind == DELIVER and r.status != OPEN][:MOST_PAST]
    return Past(releases=len(over), failed=sum(r.status != PROMOTED or r.number in taken for r in over))


def taken_back(releases: Sequence[Release]) -> frozenset[int]:
    """The releases that a rollback of its own took out of production after they had been promoted."""
    done = (release for release in releases if release.kind == ROLLBACK and release.status in (PROMOTED, ROLLED_BACK))
    return frozenset(release.previous for release in done)


def _serves(release: Release) -> bool:
    return release.kind == DELIVER and release.status == PROMOTED


def _meant(release: Release) -> int:
    """A rollback has a number of its own, and is about the release that it took back."""
    return release.previous or release.number if release.kind == ROLLBACK else release.number


def _shipped(release: Release) -> Shipped:
    return Shipped(
        number=_meant(release),
        commit=release.commit,
        artifact=release.artifact,
        config=release.config,
        outcome=release.status,
        at=release.ended,
    )


def _freeze(release: Release) -> Freeze:
    return Freeze(
        release=_meant(release),
        saga=release.saga,
        outcome=UNCLEAR if release.status == UNCLEAR else ROLLED_BACK,
        sentence=release.sentence,
        at=release.ended,
    )
