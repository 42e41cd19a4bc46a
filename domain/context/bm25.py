"""BM25 (Robertson, Zaragoza 2009): how well documents fit words. Exact over exactly the documents given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import log
from typing import Generic, TypeVar

K1 = 1.2
B = 0.75

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus(Generic[K]):
    """``documents`` is how many there are, ``average`` their mean length in words.

    ``counts`` says for each word of the query how often each document holds it; ``lengths`` has at least those.
    """

    documents: int
    average: float
    lengths: Mapping[K, int]
    counts: Mapping[str, Mapping[K, int]]


def scores(query: Mapping[str, float], corpus: Corpus[K], *, k1: float = K1, b: float = B) -> dict[K, float]:
    """Every document that holds a word of ``query`` (word to weight) with its score, above 0.

    The same sums in the same order on every machine, whatever order the mappings have.
    """
    found: dict[K, float] = {}
    for word in sorted(query):
        holding = corpus.counts.get(word, {})
        weight = query[word] * rarity(len(holding), corpus.documents)
        for document, count in holding.items():
            length = corpus.lengths[document] / corpus.average if corpus.average else 1.0
            part = weight * count * (k1 + 1) / (count + k1 * (1 - b + b * length))
            found[document] = found.get(document, 0.0) + part
    return found


def rarity(holding: int, documents: int) -> float:
    """A word's weight (idf): large when few documents hold it, never negative."""
    return log(1 + (documents - holding + 0.5) / (holding + 0.5))
