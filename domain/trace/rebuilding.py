"""Comparing a log with what the histories hold: what is the same, what is mended, what nobody can explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Key = tuple[str, str, int]
"""An event's first run, run and sequence."""
DERIVED = "derived:"
"""How the first run of a row begins that follows from others and is in no history: a rebuild leaves it as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild does to a build's rows, by their keys.

    ``added`` were not in the log, ``mended`` were damaged or told something else. ``kept`` are whole rows that no given
    event explains: their history is gone, or they are newer. ``dropped`` are damaged ones that none explains.
    """

    same: int
    added: tuple[Key, ...] = ()
    mended: tuple[Key, ...] = ()
    kept: tuple[Key, ...] = ()
    dropped: tuple[Key, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether the log is not what the given events say."""
        return bool(self.added or self.mended or self.dropped)


def compare(given: Mapping[Key, str], stored: Mapping[Key, str]) -> Rebuilt:
    """Both map keys to digests; a stored row that is damaged has "". Whole derived rows are not looked at."""
    shared = given.keys() & stored.keys()
    alone = sorted(key for key in stored.keys() - given.keys() if not (stored[key] and key[0].startswith(DERIVED)))
    return Rebuilt(
        same=sum(given[key] == stored[key] for key in shared),
        added=tuple(sorted(given.keys() - stored.keys())),
        mended=tuple(sorted(key for key in shared if given[key] != stored[key])),
        kept=tuple(key for key in alone if stored[key]),
        dropped=tuple(key for key in alone if not stored[key]),
    )
