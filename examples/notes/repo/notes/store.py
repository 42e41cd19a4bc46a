"""Notes in a SQLite file. One store serves all threads of a process; several processes may share the file."""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from notes.errors import NotFound, RevisionConflict
from notes.model import Note, NoteDraft, NoteFilter, Page
from notes.schema import migrate

COLUMNS = "id, title, body, pinned, revision, created_at, updated_at"
BUSY_TIMEOUT_SECONDS = 5.0


def _now() -> datetime:
    return datetime.now(UTC)


class NoteStore:
    """Create, read, change, delete and list notes. Every change is one transaction."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = _now):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        migrate(self._connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def ping(self) -> None:
        """Raises sqlite3.Error when the database cannot be read."""
        with self._reading() as connection:
            connection.execute("SELECT count(*) FROM notes WHERE position < 0").fetchone()

    def create(self, draft: NoteDraft) -> Note:
        now = self._timestamp()
        note_id = uuid.uuid4().hex
        with self._writing() as connection:
            connection.execute(
                f"INSERT INTO notes ({COLUMNS}) VALUES (?, ?, ?, ?, 1, ?, ?)",
                (note_id, draft.title, draft.body, draft.pinned, now, now),
            )
            return _find(connection, note_id)

    def get(self, note_id: str) -> Note:
        """Raises NotFound."""
        with self._reading() as connection:
            return _find(connection, note_id)

    def change(self, note_id: str, decide: Callable[[Note], NoteDraft], *, revision: int | None = None) -> Note:
        """Store what ``decide`` makes of the note. ``revision`` is what the client last saw, ``None`` any.

        Nobody else changes the note while ``decide`` runs, and nothing is stored when it raises.
        Raises NotFound, and RevisionConflict when the note has another revision by now.
        """
        with self._writing() as connection:
            note = _find(connection, note_id)
            _check_revision(note, revision)
            draft = decide(note)
            connection.execute(
                "UPDATE notes SET title = ?, body = ?, pinned = ?, revision = revision + 1, updated_at = ?"
                " WHERE id = ?",
                (draft.title, draft.body, draft.pinned, self._timestamp(), note_id),
            )
            return _find(connection, note_id)

    def delete(self, note_id: str, *, revision: int | None = None) -> None:
        """Raises NotFound and RevisionConflict."""
        with self._writing() as connection:
            _check_revision(_find(connection, note_id), revision)
            connection.execute("DELETE FROM notes WHERE id = ?", (note_id,))

    def list(self, wanted: NoteFilter, *, limit: int, before: int | None = None) -> Page:
        """Newest first. ``before`` is the ``next_position`` of the page that came before this one."""
        where, values = _conditions(wanted, before)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT position, {COLUMNS} FROM notes WHERE {where} ORDER BY position DESC LIMIT ?",
                (*values, limit + 1),
            ).fetchall()
        more = len(rows) > limit
        kept = rows[:limit]
        return Page(
            notes=tuple(_note(row) for row in kept),
            next_position=kept[-1]["position"] if more else None,
        )

    def count(self) -> int:
        with self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])

    def _timestamp(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _find(connection: sqlite3.Connection, note_id: str) -> Note:
    row = connection.execute(f"SELECT {COLUMNS} FROM notes WHERE id = ?", (note_id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no note {note_id!r}")
    return _note(row)


def _note(row: sqlite3.Row) -> Note:
    return Note(
        id=row["id"],
        title=row["title"],
        body=row["body"],
        pinned=bool(row["pinned"]),
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _check_revision(note: Note, revision: int | None) -> None:
    if revision is not None and revision != note.revision:
        raise RevisionConflict(f"the note has revision {note.revision}, not {revision}")


def _conditions(wanted: NoteFilter, before: int | None) -> tuple[str, list[object]]:
    conditions = ["1"]
    values: list[object] = []
    if before is not None:
        conditions.append("position < ?")
        values.append(before)
    if wanted.pinned is not None:
        conditions.append("pinned = ?")
        values.append(wanted.pinned)
    if wanted.text:
        pattern = f"%{_escape_like(wanted.text)}%"
        conditions.append(r"(title LIKE ? ESCAPE '\' OR body LIKE ? ESCAPE '\')")
        values += [pattern, pattern]
    return " AND ".join(conditions), values


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
