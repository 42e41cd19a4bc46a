"""A release as canonical JSON, and which of two writes stays: the same whatever the database."""

from __future__ import annotations

import json
from dataclasses import asdict

from adapters.store.content import canonical
from domain.errors import InvalidInput, KeyConflict, UnknownName
from domain.ports.releases import OPEN, PROMOTED, ROLLED_BACK, UNCLEAR, UNDELIVERED, Release

STATUSES = (OPEN, PROMOTED, ROLLED_BACK, UNDELIVERED, UNCLEAR)


def written(release: Release) -> str:
    """Its content. Raises InvalidInput, UnknownName."""
    name = f"release {release.number} of {release.project}"
    if release.number < 1 or release.revision < 0 or not release.saga:
        raise InvalidInput(f"{name}: a number from 1, a revision from 0 and a saga are needed")
    if release.status not in STATUSES:
        raise UnknownName.among("status of a release", release.status[:40], STATUSES)
    return canonical(name, asdict(release))


def read(content: str) -> Release | None:
    """None for a number that is only reserved."""
    return Release(**json.loads(content)) if content else None


def check_owner(release: Release, *, owner: str, owned: int) -> None:
    """``owner`` is the saga that has the release's number ("": nobody), ``owned`` the number that its saga has (0:
    none). Raises KeyConflict."""
    name = f"release {release.number} of {release.project}"
    if owner not in ("", release.saga):
        raise KeyConflict(f"{name} belongs to {owner}, not to {release.saga}")
    if owned not in (0, release.number):
        raise KeyConflict(f"{name} cannot be {release.saga}'s, whose release is {owned}")


def is_newer(release: Release, content: str, *, there: str) -> bool:
    """Whether ``content`` replaces what is ``there``. Raises KeyConflict."""
    stored = read(there)
    if stored is None or stored.revision < release.revision:
        return True
    if stored.revision == release.revision and there != content:
        name = f"release {release.number} of {release.project}"
        raise KeyConflict(f"{name} is there in revision {release.revision} with another content")
    return False
