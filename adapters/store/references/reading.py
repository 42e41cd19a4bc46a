"""Holders and their names out of the store's rows: the same whatever the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from domain.errors import DigestMismatch, EventUnreadable
from domain.keeping.holders import BUILD, RELEASE, SNAPSHOT, Holder
from domain.keeping.references import named_in
from domain.ports.releases import Release
from domain.ports.store import BuildRow, Event, UndoRecord

TAKEN = "snapshot.taken"  # data: token, state and the other digests that it needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one build has in the log, the calls and the undo records: ``state`` changes when any of it does."""

    first: int
    last: int
    state: str


def build_holder(build: str, seen: Seen, row: BuildRow | None) -> Holder:
    """A build without a row of its own never began: it counts as over since it last told something."""
    return Holder(
        name=build,
        kind=BUILD,
        project=row.project if row else "",
        started=row.started if row else seen.first,
        ended=row.ended if row else seen.last,
        state=seen.state,
        owner=build,
    )


def snapshot_holder(event: Event, *, project: str, state: str) -> Holder:
    """Named by its token. Raises EventUnreadable."""
    token = event.data.get("token")
    if not isinstance(token, str) or not token:
        raise EventUnreadable(f"event {event.key} ({event.kind}) of build {event.build} has no token")
    return Holder(
        name=token, kind=SNAPSHOT, project=project, started=event.at, ended=event.at, state=state, owner=event.build
    )


def release_holder(release: Release) -> Holder:
    """Named by its project and number; its build is its saga where a commit of yours was delivered."""
    return Holder(
        name=f"{release.project}#{release.number}",
        kind=RELEASE,
        project=release.project,
        started=release.started,
        ended=release.ended,
        state=str(release.revision),
        number=release.number,
        status=release.status,
        previous=release.previous,
        owner=release.build or release.saga,
    )


def names_of_build(
    events: Iterable[Event], answers: Iterable[tuple[str, str]], undo: Iterable[UndoRecord]
) -> dict[str, str]:
    """``answers`` are the raw and the decoded answer of each call, "" where there is none."""
    return _joined(
        *(named_in(dict(event.data)) for event in events),
        *(named_in({"answer": raw, "value": value}) for raw, value in answers),
        *(named_in(dict(record.data)) for record in undo),
    )


def names_of_release(release: Release) -> dict[str, str]:
    """The artefact, and what its record tells of."""
    return named_in(asdict(release))


def damaged(holder: str) -> DigestMismatch:
    """That the table cannot be believed."""
    return DigestMismatch(
        f"the reference table is damaged: what it has of {holder} does not add up; "
        "`mendwork gc --afresh` makes it again"
    )


def _joined(*parts: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for digest, what in _pairs(parts):
        found.setdefault(digest, what)
    return found


def _pairs(parts: Iterable[dict[str, str]]) -> Iterator[tuple[str, str]]:
    for part in parts:
        yield from part.items()
