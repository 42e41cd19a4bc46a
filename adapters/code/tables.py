"""One index file: its tables, its version, and what happens when it is damaged or of another version."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

VERSION = 1
"""Of the tables and of what is written into them: words, grammars, symbols. Another version's index is made again."""

_BUSY_SECONDS = 60.0
_TABLES = """
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, passages INTEGER NOT NULL, length INTEGER NOT NULL,
    lengths BLOB NOT NULL, imports TEXT NOT NULL, facts TEXT NOT NULL
);
CREATE TABLE postings (word TEXT NOT NULL, blob INTEGER NOT NULL, counts BLOB NOT NULL, PRIMARY KEY (word, blob))
    WITHOUT ROWID;
CREATE TABLE names (name TEXT NOT NULL, defines INTEGER NOT NULL, blob INTEGER NOT NULL,
    PRIMARY KEY (name, defines, blob)) WITHOUT ROWID;
"""
# What a damaged file says; "locked", "full" and "I/O" are about the machine.
_DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)

T = TypeVar("T")


class Foreign(Exception):
    """The index is of another version, or none yet."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a sound index, for one piece of work; the index is made first where there is none.

    Nobody replaces the file while a connection is open: that waits for a lock that each holder shares.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path, fcntl.LOCK_SH), closing(_connect(path)) as connection:
        if _version(connection) != VERSION:
            raise Foreign(path.name)
        connection.execute("CREATE TEMP TABLE wanted (blob INTEGER PRIMARY KEY, path TEXT NOT NULL)")
        yield connection


def renew(path: Path, *, damaged: bool) -> None:
    """Throw away what cannot be used and make an empty index. A sound one, which another process may have made
    meanwhile, stays where the old one was not ``damaged`` but only of another version."""
    with _locked(path, fcntl.LOCK_EX):
        with contextlib.suppress(sqlite3.DatabaseError), closing(_connect(path)) as connection:
            if not damaged and _version(connection) == VERSION:
                return
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        with closing(_connect(path)) as connection:
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {VERSION};COMMIT;")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is to blame, and a new one would help."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or (code & 0xFF) in _DAMAGES


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    # A cache: what a power cut takes is read again, and a file that it damages is thrown away.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -64000")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    found: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return found[0]


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
