"""The port ``CodeIndex`` in one SQLite file a project, keyed by git's object ids: a content is parsed once, ever."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from adapters.code.reading import Reading, read_source
from adapters.code.tables import Foreign, is_damage, opened, renew
from domain.build.names import check_project_name
from domain.context.kinds import language, left_aside
from domain.context.symbols import FileFacts, Matches, Mentions, Symbol
from domain.errors import Overtaken, ResourceShort
from domain.ports.code import SourceFile
from domain.ports.workspace import TreeFile

_BATCH = 1_000
_MOST_COUNTED = 65_535
_ADD = "INSERT OR IGNORE INTO blobs (key, passages, length, lengths, imports, facts) VALUES (?, ?, ?, ?, ?, ?)"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteCodeIndex:
    """``folder`` holds ``<project>.db``. Work is done in threads: reading and asking may take seconds."""

    folder: Path

    async def missing(self, project: str, files: Collection[TreeFile]) -> tuple[TreeFile, ...]:
        """See CodeIndex."""
        wanted = {_key(file.path, file.oid): file for file in reversed(tuple(files)) if _is_indexed(file)}
        try:
            known = await self._do(project, lambda connection: _known(connection, wanted))
        except Overtaken:  # there was none, or none that can be used: nothing is known yet
            known = set()
        return tuple(sorted((wanted[key] for key in wanted.keys() - known), key=lambda file: file.path))

    async def learn(self, project: str, sources: Iterable[SourceFile]) -> int:
        """See CodeIndex."""
        named = {_key(source.path, source.oid): source for source in sources if source.oid}
        known = await self._do(project, lambda connection: _known(connection, named))
        fresh = sorted(named.keys() - known)
        for start in range(0, len(fresh), _BATCH):
            keys = fresh[start : start + _BATCH]
            readings = await asyncio.to_thread(_read_all, [(key, named[key]) for key in keys])
            await self._do(project, partial(_insert, readings=readings))
        return len(fresh)

    async def matches(self, project: str, files: Collection[TreeFile], words: Collection[str]) -> Matches:
        """See CodeIndex."""
        return await self._do(project, lambda connection: _matches(connection, files, sorted(set(words))))

    async def mentions(self, project: str, files: Collection[TreeFile], names: Collection[str]) -> Mentions:
        """See CodeIndex."""
        return await self._do(project, lambda connection: _mentions(connection, files, sorted(set(names))))

    async def facts(self, project: str, files: Collection[TreeFile]) -> Mapping[str, FileFacts]:
        """See CodeIndex."""
        return await self._do(project, lambda connection: _facts(connection, files))

    async def imports(self, project: str, files: Collection[TreeFile]) -> Mapping[str, tuple[str, ...]]:
        """See CodeIndex."""
        return await self._do(project, lambda connection: _imports(connection, files))

    async def _do(self, project: str, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._work, check_project_name(project), work)

    def _work(self, project: str, work: Callable[[sqlite3.Connection], T]) -> T:
        path = self.folder / f"{project}.db"
        try:
            try:
                with opened(path) as connection:
                    return work(connection)
            except (Foreign, sqlite3.DatabaseError) as error:
                if isinstance(error, sqlite3.DatabaseError) and not is_damage(error):
                    raise
                renew(path, damaged=not isinstance(error, Foreign))
                raise Overtaken(
                    f"the code index of project {project} was made anew: it has to be taught again"
                ) from error
        except (sqlite3.DatabaseError, OSError) as error:
            raise ResourceShort(f"the code index of project {project} cannot be used: {error}") from error


def _key(path: str, oid: str) -> str:
    """The same bytes are other symbols in another language."""
    return f"{oid}:{language(path)}"


def _is_indexed(file: TreeFile) -> bool:
    return bool(file.oid) and file.kind in ("file", "executable") and not left_aside(file.path, file.size)


def _known(connection: sqlite3.Connection, keys: Collection[str]) -> set[str]:
    connection.execute("CREATE TEMP TABLE asked (key TEXT PRIMARY KEY)")
    connection.executemany("INSERT OR IGNORE INTO asked VALUES (?)", ((key,) for key in keys))
    return {key for (key,) in connection.execute("SELECT key FROM asked JOIN blobs USING (key)")}


def _read_all(named: list[tuple[str, SourceFile]]) -> list[tuple[str, Reading]]:
    return [(key, read_source(source.path, source.content)) for key, source in named]


def _insert(connection: sqlite3.Connection, readings: list[tuple[str, Reading]]) -> None:
    """All or nothing; what another process was first with is left out."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        postings: list[tuple[str, int, bytes]] = []
        names: list[tuple[str, int, int]] = []
        for key, reading in readings:
            facts = reading.facts
            added = connection.execute(_ADD, _row(key, reading))
            if added.rowcount:
                blob = added.lastrowid or 0
                postings += [(word, blob, counts) for word, counts in _packed(reading)]
                names += [(symbol.name, 1, blob) for symbol in facts.symbols if symbol.name]
                names += [(name, 0, blob) for name in facts.calls]
        # In the order of their keys the pages of a table are filled one after another.
        connection.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?)", sorted(postings))
        connection.executemany("INSERT OR IGNORE INTO names VALUES (?, ?, ?)", sorted(names))


def _row(key: str, reading: Reading) -> tuple[str, int, int, bytes, str, str]:
    lengths = [sum(passage.values()) for passage in reading.passages]
    facts = asdict(reading.facts)
    imports = json.dumps(facts.pop("imports"))
    return key, len(lengths), sum(lengths), array("I", lengths).tobytes(), imports, json.dumps(facts)


def _packed(reading: Reading) -> Iterable[tuple[str, bytes]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, passage in enumerate(reading.passages[:_MOST_COUNTED]):
        for word, count in passage.items():
            found[word] += (number, min(count, _MOST_COUNTED))
    return ((word, array("H", counts).tobytes()) for word, counts in found.items())


def _want(connection: sqlite3.Connection, files: Collection[TreeFile]) -> dict[int, list[str]]:
    """The blobs of these files, each with its paths; also as the table ``wanted``."""
    by_key: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if _is_indexed(file):
            by_key[_key(file.path, file.oid)].append(file.path)
    connection.execute("CREATE TEMP TABLE asked (key TEXT PRIMARY KEY)")
    connection.executemany("INSERT INTO asked VALUES (?)", ((key,) for key in by_key))
    rows = connection.execute("SELECT id, key FROM asked JOIN blobs USING (key)").fetchall()
    connection.executemany("INSERT INTO wanted VALUES (?, ?)", rows)
    return {blob: sorted(by_key[key]) for blob, key in rows}


def _matches(connection: sqlite3.Connection, files: Collection[TreeFile], words: list[str]) -> Matches:
    paths = _want(connection, files)
    passages = length = 0
    for blob, count, words_inside in connection.execute(
        "SELECT id, passages, length FROM wanted JOIN blobs ON id = blob"
    ):
        passages += count * len(paths[blob])
        length += words_inside * len(paths[blob])
    counts: dict[str, dict[str, dict[int, int]]] = {}
    held: set[int] = set()
    for word in words:
        found: dict[str, dict[int, int]] = {}
        for blob, packed in connection.execute("SELECT blob, counts FROM postings WHERE word = ?", (word,)):
            if blob in paths:
                held.add(blob)
                pairs = _array("H", packed)
                inside = dict(zip(pairs[::2], pairs[1::2], strict=True))
                found |= dict.fromkeys(paths[blob], inside)
        counts[word] = found
    lengths: dict[str, tuple[int, ...]] = {}
    for blob in sorted(held):
        (packed,) = connection.execute("SELECT lengths FROM blobs WHERE id = ?", (blob,)).fetchone()
        lengths |= dict.fromkeys(paths[blob], tuple(_array("I", packed)))
    total = sum(map(len, paths.values()))
    return Matches(files=total, passages=passages, length=length, lengths=lengths, counts=counts)


def _mentions(connection: sqlite3.Connection, files: Collection[TreeFile], names: list[str]) -> Mentions:
    paths = _want(connection, files)
    found: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = ({}, {})
    for name in names:
        for defines in (0, 1):
            rows = connection.execute("SELECT blob FROM names WHERE name = ? AND defines = ?", (name, defines))
            holders = sorted(path for (blob,) in rows for path in paths.get(blob, ()))
            if holders:
                found[defines][name] = tuple(holders)
    return Mentions(called=found[0], defined=found[1])


def _facts(connection: sqlite3.Connection, files: Collection[TreeFile]) -> dict[str, FileFacts]:
    paths = _want(connection, files)
    rows = connection.execute("SELECT id, facts, imports FROM wanted JOIN blobs ON id = blob").fetchall()
    return {
        path: _read(json.loads(facts), json.loads(imports)) for blob, facts, imports in rows for path in paths[blob]
    }


def _read(facts: Mapping[str, Any], imports: list[str]) -> FileFacts:
    symbols = tuple(Symbol(**symbol) for symbol in facts["symbols"])
    return FileFacts(symbols=symbols, calls=tuple(facts["calls"]), imports=tuple(imports), skipped=facts["skipped"])


def _imports(connection: sqlite3.Connection, files: Collection[TreeFile]) -> dict[str, tuple[str, ...]]:
    paths = _want(connection, files)
    rows = connection.execute("SELECT id, imports FROM wanted JOIN blobs ON id = blob WHERE imports <> '[]'").fetchall()
    return {path: tuple(json.loads(imports)) for blob, imports in rows for path in paths[blob]}


def _array(kind: str, packed: bytes) -> array[int]:
    values = array(kind)
    values.frombytes(packed)
    return values
