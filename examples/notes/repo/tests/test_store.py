"""The store without HTTP."""

from __future__ import annotations

import sqlite3
import tempfile
import unittest
from datetime import UTC, datetime, timedelta
from pathlib import Path

from notes.errors import NotFound
from notes.model import Note, NoteDraft, NoteFilter
from notes.schema import MIGRATIONS, SchemaTooNew, migrate
from notes.store import NoteStore


class StoreCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "deep" / "notes.db"
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def open(self) -> NoteStore:
        store = NoteStore(self.path, clock=lambda: self.now)
        self.addCleanup(store.close)
        return store

    def connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(connection.close)
        return connection


class DurabilityTest(StoreCase):
    def test_notes_are_there_after_a_restart(self) -> None:
        store = self.open()
        note = store.create(NoteDraft("Milk"))
        store.close()
        self.assertEqual(self.open().get(note.id), note)

    def test_two_stores_share_one_file(self) -> None:
        first, second = self.open(), self.open()
        note = first.create(NoteDraft("Milk"))
        second.change(note.id, lambda _: NoteDraft("Bread"))
        self.assertEqual(first.get(note.id).title, "Bread")

    def test_a_change_that_fails_leaves_the_note_alone(self) -> None:
        store = self.open()
        note = store.create(NoteDraft("Milk"))

        def fail(_: Note) -> NoteDraft:
            raise RuntimeError("no")

        with self.assertRaises(RuntimeError):
            store.change(note.id, fail)
        self.assertEqual(store.get(note.id), note)
        store.delete(note.id)

    def test_positions_are_never_used_again(self) -> None:
        store = self.open()
        for _ in range(2):
            store.delete(store.create(NoteDraft("Milk")).id)
        store.create(NoteDraft("Bread"))
        store.create(NoteDraft("Eggs"))
        self.assertEqual(store.list(NoteFilter(), limit=1).next_position, 4)


class ClockTest(StoreCase):
    def test_a_change_moves_only_the_time_of_the_change(self) -> None:
        store = self.open()
        note = store.create(NoteDraft("Milk"))
        self.now += timedelta(hours=1)
        changed = store.change(note.id, lambda _: NoteDraft("Bread"))
        self.assertEqual(changed.created_at, "2026-03-01T12:00:00.000+00:00")
        self.assertEqual(changed.updated_at, "2026-03-01T13:00:00.000+00:00")


class MigrationTest(StoreCase):
    def test_the_oldest_database_is_brought_up_to_date(self) -> None:
        old = self.connect()
        for statement in MIGRATIONS[0]:
            old.execute(statement)
        old.execute(
            "INSERT INTO notes (id, title, body, revision, created_at, updated_at)"
            " VALUES ('n1', 'Milk', '', 1, 'a', 'b')"
        )
        old.execute("PRAGMA user_version = 1")
        self.assertEqual(self.open().get("n1").pinned, False)

    def test_migrating_twice_changes_nothing(self) -> None:
        connection = self.connect()
        self.assertEqual(migrate(connection), migrate(connection))

    def test_a_database_of_a_newer_release_is_refused_untouched(self) -> None:
        connection = self.connect()
        connection.execute("PRAGMA user_version = 999")
        with self.assertRaises(SchemaTooNew):
            migrate(connection)
        self.assertEqual(connection.execute("PRAGMA user_version").fetchone(), (999,))

    def test_an_unknown_note_is_not_found(self) -> None:
        with self.assertRaises(NotFound):
            self.open().get("nobody")
