"""From text and source to the words that a search compares: identifiers split, endings cut, the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

LONGEST = 64
"""Letters of a word; what is longer is data."""

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# What is in every text says nothing of any; what is in every file of a language neither.
_EMPTY_WORDS = (
    "a an and any are as at be been being but by can could did do does for from had has have how if in into is it its"
    " let may might more most must no nor not of on only or other our out over same shall should so some such than"
    " that the their them then there these they this those to too under up use used user using very was we were what"
    " when where which while who whose why will with would you your def self cls return none true false import class"
    " function const var let new this null undefined"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())


def words(text: str) -> Iterator[str]:
    """The search words of ``text`` in order, lower case: an identifier gives its parts, and itself in one word.

    ``split_before`` gives "split", "before", "splitbefore"; ``HTTPServer2`` "http", "server", "2", "httpserver2".
    """
    for word in _WORD.findall(text):
        if len(word) <= LONGEST:
            yield from _of(word)


def parts(identifier: str) -> tuple[str, ...]:
    """The words that an identifier is made of, lower case, uncut: ``fooBarHTTP`` is foo, bar, http."""
    return tuple(part.lower() for part in _PART.findall(identifier))


def identifiers(text: str) -> tuple[str, ...]:
    """What may be names of symbols in ``text``: every word of letters, digits and underscores, each once."""
    found = (word for word in _WORD.findall(text) if 2 < len(word) <= LONGEST and not word[0].isdigit())
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=100_000)
def _of(word: str) -> tuple[str, ...]:
    pieces = parts(word)
    found = [stem(piece) for piece in pieces if len(piece) > 1 and piece not in _EMPTY]
    if len(pieces) > 1:
        found.append("".join(pieces))
    return tuple(found)


def stem(word: str) -> str:
    """``word`` without the endings that English verbs and plurals have: "splits", "splitting" and "split" are one.

    Not a linguist's stem: it only has to be the same for both sides of a comparison.
    """
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = word.removesuffix(ending)
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
