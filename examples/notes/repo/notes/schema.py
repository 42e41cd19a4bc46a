"""The database schema, as migrations that are only ever appended to."""

from __future__ import annotations

import sqlite3

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE notes (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            title TEXT NOT NULL,
            body TEXT NOT NULL,
            revision INTEGER NOT NULL,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL
        )
        """,
    ),
    (
        "ALTER TABLE notes ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX notes_pinned ON notes (pinned, position)",
    ),
)


class SchemaTooNew(Exception):
    """The database was written by a newer release than this one."""


def migrate(connection: sqlite3.Connection) -> int:
    """Bring the database to the newest version, all or nothing, and return that version.

    Two processes may do this at once: the write lock lets one of them find the work done.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise SchemaTooNew(f"the database has version {version}, this release knows {len(MIGRATIONS)}")
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return len(MIGRATIONS)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
