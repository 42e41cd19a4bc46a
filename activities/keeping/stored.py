"""Keeping house beside the store: blobs by mark and sweep, and the judgement on what lies elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from temporalio import activity

from activities.keeping.marking import Marking
from domain.errors import ResourceShort
from domain.keeping.holders import BUILD, DAY_MS, SNAPSHOT, Holder, kept, oldest_open, settled_before
from domain.keeping.retention import Retention
from domain.keeping.sweeping import Kind, unneeded
from domain.ports.blobs import KeptBlobs, StoredBlob
from domain.ports.kept.keeping import Pins, References

NO_BUILDS = "the store knows no build: perhaps it is another one than these blobs belong to, so nothing is taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBlobsInput:
    """``now`` is ms since 1970; what was written within ``grace`` ms of it is never taken. ``project`` "" is all of
    them; ``afresh`` makes the reference table again first."""

    now: int
    dry_run: bool = False
    project: str = ""
    grace: int = DAY_MS
    afresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePinsInput:
    """``pins`` as the mirrors have them; ``now`` is ms since 1970."""

    now: int
    pins: tuple[Pins, ...] = ()
    grace: int = DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPins:
    """``pins`` are those that nothing needs, without sizes, ``stayed`` counts the others. ``before`` (ms) is when what
    no ref holds must have been written to go; ``began`` (ms) is the start of the oldest open build, 0 without one, and
    ``oldest`` its name."""

    pins: tuple[Pins, ...]
    stayed: int
    before: int
    began: int = 0
    oldest: str = ""


class Keeping:
    """Runs where the store is. ``retention`` is by project."""

    def __init__(self, *, references: References, blobs: KeptBlobs, retention: Mapping[str, Retention]) -> None:
        self._references = references
        self._blobs = blobs
        self._retention = retention

    @activity.defn
    async def sweep_blobs(self, request: SweepBlobsInput) -> Kind:
        """Remove what no kept holder names. Nothing is removed before all that is needed is known.

        Raises EventUnreadable, DigestMismatch (rows, the table or a blob are damaged), StoreUnavailable.
        """
        if request.afresh and not request.dry_run:
            await self._references.forget()
        stored = await self._blobs.list()  # before the rows: what is written after this look is not in it
        holders = await self._references.holders()
        if not holders:
            return Kind(kind="blobs", stayed=len(stored), why=NO_BUILDS if stored else "")
        needing = kept(holders, now=request.now, retention=self._retention)
        marking = Marking(self._references, self._blobs, stored, record=not request.dry_run)
        marks = await marking.marks(needing)
        needed = {digest for names in marks.values() for digest in names}
        before = settled_before(holders, now=request.now, grace=request.grace)
        chosen: Sequence[StoredBlob] = unneeded(stored, needed=needed, before=before)
        past = [holder for holder in holders if holder.name not in marks]
        if request.project:
            chosen = await self._of_project(chosen, [each for each in past if each.project == request.project], stored)
        why = _held_up(holders, now=request.now, grace=request.grace)
        gone = await self._take(chosen, before=before, dry_run=request.dry_run)
        if past and not request.dry_run:
            with suppress(ResourceShort):  # they are in nobody's way
                await self._references.forget([holder.name for holder in past])
        return Kind(kind="blobs", count=len(gone), bytes=sum(gone.values()), stayed=len(stored) - len(gone), why=why)

    @activity.defn
    async def judge_pins(self, request: JudgePinsInput) -> JudgedPins:
        """Which refs of mirrors nothing needs. What the store does not know may be another store's, and stays."""
        holders = await self._references.holders()
        needing = kept(holders, now=request.now, retention=self._retention)
        kept_names = {holder.name for holder in needing} | {holder.owner for holder in needing}
        past = {kind: {h.name for h in holders if h.kind == kind} - kept_names for kind in (BUILD, SNAPSHOT)}
        judged = tuple(_past(pins, past[BUILD], past[SNAPSHOT]) for pins in request.pins)
        oldest = oldest_open(holders)
        return JudgedPins(
            pins=tuple(pins for pins in judged if pins.builds or pins.snapshots),
            stayed=_count(request.pins) - _count(judged),
            before=settled_before(holders, now=request.now, grace=request.grace),
            began=oldest.started if oldest else 0,
            oldest=oldest.name if oldest else "",
        )

    async def _of_project(
        self, chosen: Sequence[StoredBlob], past: Sequence[Holder], stored: Sequence[StoredBlob]
    ) -> list[StoredBlob]:
        marks = await Marking(self._references, self._blobs, stored, record=False).marks(past)
        theirs = {digest for names in marks.values() for digest in names}
        return [blob for blob in chosen if blob.digest in theirs]

    async def _take(self, chosen: Iterable[StoredBlob], *, before: int, dry_run: bool) -> dict[str, int]:
        """The bytes of each that went, or would go. One that was put again meanwhile stays."""
        gone: dict[str, int] = {}
        for blob in chosen:
            if dry_run:
                gone[blob.digest] = blob.size
            elif freed := await self._blobs.remove(blob.digest, before=before):
                gone[blob.digest] = freed
        return gone


def _past(pins: Pins, builds: set[str], snapshots: set[str]) -> Pins:
    return Pins(
        project=pins.project,
        builds=tuple(name for name in pins.builds if name in builds),
        snapshots=tuple(name for name in pins.snapshots if name in snapshots),
        bytes=0,
    )


def _count(pins: Iterable[Pins]) -> int:
    return sum(len(each.builds) + len(each.snapshots) for each in pins)


def _held_up(holders: Iterable[Holder], *, now: int, grace: int) -> str:
    """A build that nobody ends keeps everything that was written since it began: people should know."""
    oldest = oldest_open(holders)
    if oldest is None or oldest.started > now - 7 * grace:
        return ""
    days = (now - oldest.started) // DAY_MS
    return f"{oldest.name} is open since {days} days: nothing that was written since it began is taken"
