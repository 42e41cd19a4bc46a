"""What a model is shown of a repository, inside a budget of tokens, and the record of it: the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from domain.context.ranking import Ranked
from domain.context.tokens import tokens

How = Literal["full", "outline", "listed", "left out"]

# What one file that was only found may take of what is left: the best one most of it, none all.
_BEST_SHARE, _SHARE = 0.85, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A file that may be shown. ``size`` is in bytes, ``outline`` the text of its outline ("" for none); ``unfit`` says
    why its text cannot be shown. ``must``: somebody named it, so it comes before what was only found."""

    path: str
    why: str
    size: int
    score: float = 0.0
    outline: str = ""
    unfit: str = ""
    must: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a manifest. ``reason`` says why a file is not shown in full, "" when it is."""

    path: str
    why: str
    how: How
    score: float
    tokens: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """``budget`` in tokens. At most so many of the found files are shown ``full`` or as ``outlines``, none below
    ``floor`` times the best score."""

    budget: int
    full: int = 12
    outlines: int = 40
    floor: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was shown of a commit, in the order in which it was chosen. ``files`` counts the tree's."""

    commit: str
    budget: int
    files: int
    entries: tuple[Entry, ...]

    @property
    def tokens(self) -> int:
        """The estimate of all that is shown."""
        return sum(entry.tokens for entry in self.entries)

    def paths(self, how: How) -> tuple[str, ...]:
        """The files shown that way, in their order."""
        return tuple(entry.path for entry in self.entries if entry.how == how)

    def to_json(self) -> Mapping[str, Any]:
        """For canonical JSON: the same inputs, the same manifest, on every machine."""
        return {**asdict(self), "tokens": self.tokens}


def pack(offers: Iterable[Offer], measure: Measure) -> tuple[Entry, ...]:
    """Decide for each offer, in their order, by sizes alone. What must be shown is, while it fits."""
    left, full, outlines = measure.budget, 0, 0
    best, first = 0.0, True
    found: list[Entry] = []
    for offer in offers:
        best = max(best, 0.0 if offer.must else offer.score)
        cost, short = tokens(offer.size), tokens(len(offer.outline.encode()))
        share = 1.0 if offer.must else _BEST_SHARE if first else _SHARE
        reason = offer.unfit or ("" if cost <= left * share else f"{offer.size} bytes do not fit")
        if not offer.must:
            reason = reason or ("others fit better" if full >= measure.full else "")
        if not offer.must and offer.score < measure.floor * best:
            entry = _entry(offer, "listed", 0, "little speaks for it")
        elif not reason:
            entry = _entry(offer, "full", cost, "")
            full += not offer.must
        elif offer.outline and short <= left and (offer.must or outlines < measure.outlines):
            entry = _entry(offer, "outline", short, reason)
            outlines += not offer.must
        else:
            entry = _entry(offer, "left out" if offer.must else "listed", 0, reason)
        left -= entry.tokens
        first = first and offer.must
        found.append(entry)
    return tuple(found)


def offers_of(ranked: Sequence[Ranked], sizes: Mapping[str, int], outlines: Mapping[str, str]) -> list[Offer]:
    """The found files as offers, in their order."""
    return [
        Offer(path=r.path, why=r.why, size=sizes[r.path], score=r.score, outline=outlines.get(r.path, ""))
        for r in ranked
        if r.path in sizes
    ]


def _entry(offer: Offer, how: How, cost: int, reason: str) -> Entry:
    return Entry(path=offer.path, why=offer.why, how=how, score=offer.score, tokens=cost, reason=reason)
