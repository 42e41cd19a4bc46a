"""Which files of a tree a task is about: words, names, and who uses whom, in one number a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from domain.context.bm25 import Corpus, rarity, scores
from domain.context.imports import ImportGraph
from domain.context.kinds import Kind, kind, tested_stem
from domain.context.symbols import FileFacts, Matches, Mentions
from domain.context.words import words

# How much of a file's words counts: a change in words is most often a change of source, and prose repeats its words.
_KINDS: Mapping[Kind, float] = {"source": 1.0, "test": 0.5, "other": 0.3, "prose": 0.25}
_PASSAGE, _FILE, _PATH, _SYMBOL = 0.6, 0.4, 0.15, 0.3
_LINKS = {"test": 0.6, "callee": 0.5, "caller": 0.45, "imported": 0.3, "importer": 0.2}
_WELL_KNOWN = 8  # a name that more files define says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """``why`` is the strongest reason: "ranked" (words), "symbol", "test", "caller", "callee", "imported",
    "importer"."""

    path: str
    score: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one tree for one query. ``anchors`` are the files that the task names, with their facts."""

    query: Mapping[str, float]
    matches: Matches
    mentions: Mentions = field(default_factory=lambda: Mentions(defined={}, called={}))
    graph: ImportGraph = field(default_factory=lambda: ImportGraph((), {}))
    anchors: Mapping[str, FileFacts] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def query_of(*texts: str) -> dict[str, float]:
    """The search words of the texts with their weights: a word said again counts a little more."""
    counts = Counter(word for text in texts for word in words(text))
    return {word: 1.0 + 0.5 * min(count - 1, 2) for word, count in counts.items()}


def rank(evidence: Evidence) -> tuple[Ranked, ...]:
    """Every file that anything speaks for but the anchors themselves, best first; ties by path."""
    reasons: dict[str, dict[str, float]] = defaultdict(dict)
    for path, score in _by_words(evidence).items():
        reasons[path]["ranked"] = score
    for path in _named(evidence):
        reasons[path]["symbol"] = _SYMBOL
    for path, link in _linked(evidence):
        reasons[path][link] = _LINKS[link]
    found = [
        # Rounded, so that another machine's last digit changes no order.
        Ranked(
            path=path, score=round(sum(parts[k] for k in sorted(parts)), 6), why=max(parts, key=lambda k: (parts[k], k))
        )
        for path, parts in reasons.items()
        if path not in evidence.anchors
    ]
    return tuple(sorted((each for each in found if each.score > 0), key=lambda each: (-each.score, each.path)))


def plain(query: Mapping[str, float], matches: Matches) -> dict[str, float]:
    """BM25 of whole files and nothing else."""
    lengths = {path: sum(passages) for path, passages in matches.lengths.items()}
    counts = {
        word: {path: sum(inside.values()) for path, inside in held.items()} for word, held in matches.counts.items()
    }
    average = matches.length / matches.files if matches.files else 0.0
    return scores(query, Corpus(documents=matches.files, average=average, lengths=lengths, counts=counts))


def _by_words(evidence: Evidence) -> dict[str, float]:
    """Between 0 and 1.15 a file: its best passage, the file as a whole, and its path."""
    matches = evidence.matches
    best: dict[str, float] = {}
    for (path, _), score in sorted(scores(evidence.query, _passages(matches)).items()):
        best[path] = max(best.get(path, 0.0), score)
    whole, named = plain(evidence.query, matches), _by_path(evidence)
    found: dict[str, float] = defaultdict(float)
    for weight, part in ((_PASSAGE, best), (_FILE, whole), (_PATH, named)):
        top = max(part.values(), default=0.0)
        for path, score in part.items():
            found[path] += weight * score / top
    return {path: score * _KINDS[kind(path)] for path, score in found.items()}


def _passages(matches: Matches) -> Corpus[tuple[str, int]]:
    lengths = {(path, n): length for path, each in matches.lengths.items() for n, length in enumerate(each)}
    counts = {
        word: {(path, n): count for path, inside in held.items() for n, count in inside.items()}
        for word, held in matches.counts.items()
    }
    # Very short passages would win by their length alone.
    average = max(matches.length / matches.passages if matches.passages else 0.0, 30.0)
    return Corpus(documents=matches.passages, average=average, lengths=lengths, counts=counts)


def _by_path(evidence: Evidence) -> dict[str, float]:
    inside = {path: set(words(path)) & evidence.query.keys() for path in evidence.paths}
    holding = Counter(word for each in inside.values() for word in each)
    return {
        path: sum(rarity(holding[word], len(evidence.paths)) for word in sorted(each))
        for path, each in inside.items()
        if each
    }


def _named(evidence: Evidence) -> Iterable[str]:
    """Files that define a name which the text says, where few do."""
    for name in evidence.names:
        holders = evidence.mentions.defined.get(name, ())
        if len(holders) <= _WELL_KNOWN:
            yield from holders


def _linked(evidence: Evidence) -> Iterable[tuple[str, str]]:
    """Tests, callees, callers and import neighbours of the anchors."""
    stems = {PurePosixPath(path).stem for path in evidence.anchors}
    for path in evidence.paths:
        if tested_stem(path) in stems:
            yield path, "test"
    for path, facts in evidence.anchors.items():
        for name in dict.fromkeys(symbol.name for symbol in facts.symbols):
            if len(evidence.mentions.defined.get(name, ())) <= _WELL_KNOWN:
                yield from ((each, "caller") for each in evidence.mentions.called.get(name, ()))
        for name in facts.calls:
            if len(holders := evidence.mentions.defined.get(name, ())) <= _WELL_KNOWN:
                yield from ((each, "callee") for each in holders)
        yield from ((each, "imported") for each in evidence.graph.imported(path))
        yield from ((each, "importer") for each in evidence.graph.importers(path))
