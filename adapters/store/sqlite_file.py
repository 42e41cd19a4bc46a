"""A SQLite file before the engine opens it: there, private, and in write-ahead mode."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import stamina

from adapters.store.database import BUSY_SECONDS
from adapters.store.faults import sqlite_error
from domain.errors import StoreUnavailable


def prepare(path: Path, *, name: str) -> None:
    """Create the file for its owner alone and switch it to WAL, so that no reader waits for a writer.

    Blocks. Raises StoreUnavailable or ResourceShort; ``name`` is what the sentence calls the store.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):  # another process was first, or a build ran here before
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        mode = _switch(path)
    except sqlite3.Error as error:
        raise sqlite_error(name, error) from error
    except OSError as error:
        raise StoreUnavailable(f"the store {name} cannot be created: {error.strerror}") from error
    if mode != "wal":
        raise StoreUnavailable(f"the store {name} is on a file system without write-ahead logging (mode {mode!r})")


def _switch(path: Path) -> str:
    """The change of mode does not wait for the busy timeout, so two first starts would fail each other."""
    mode = ""
    for attempt in stamina.retry_context(
        on=_locked, attempts=None, timeout=BUSY_SECONDS, wait_initial=0.02, wait_max=1
    ):
        with attempt, closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    return mode


def _locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
