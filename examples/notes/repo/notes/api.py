"""The routes of the service."""

from __future__ import annotations

import sqlite3

from notes import __version__
from notes.errors import MalformedRequest, Unavailable
from notes.model import Note
from notes.store import NoteStore
from notes.validation import (
    check_query_names,
    encode_cursor,
    parse_draft,
    parse_filter,
    parse_paging,
    parse_patch,
)
from notes.web.messages import Request, Response
from notes.web.routing import Router


def build_router(store: NoteStore, *, release: str = "") -> Router:
    """Every route, bound to ``store``."""
    api = NotesApi(store, release=release)
    router = Router()
    router.add("GET", "/healthz", api.health)
    router.add("GET", "/version", api.version)
    router.add("GET", "/notes", api.list_notes)
    router.add("POST", "/notes", api.create_note)
    router.add("GET", "/notes/{id}", api.get_note)
    router.add("PUT", "/notes/{id}", api.replace_note)
    router.add("PATCH", "/notes/{id}", api.change_note)
    router.add("DELETE", "/notes/{id}", api.delete_note)
    return router


class NotesApi:
    """One method per route."""

    def __init__(self, store: NoteStore, *, release: str):
        self._store = store
        self._release = release

    def health(self, request: Request) -> Response:
        """Whether requests can be served: the database answers."""
        try:
            self._store.ping()
        except sqlite3.Error as error:
            raise Unavailable("the database does not answer") from error
        return Response.of_json({"status": "ok"})

    def version(self, request: Request) -> Response:
        return Response.of_json({"name": "notes", "version": __version__, "release": self._release})

    def list_notes(self, request: Request) -> Response:
        check_query_names(request.query, ("limit", "cursor", "pinned", "q"))
        limit, before = parse_paging(request.query)
        page = self._store.list(parse_filter(request.query), limit=limit, before=before)
        return Response.of_json(
            {
                "items": [note.as_json() for note in page.notes],
                "next_cursor": encode_cursor(page.next_position),
            }
        )

    def create_note(self, request: Request) -> Response:
        note = self._store.create(parse_draft(request.json_object()))
        return _note_response(note, status=201, headers={"Location": f"/notes/{note.id}"})

    def get_note(self, request: Request) -> Response:
        return _note_response(self._store.get(request.parameters["id"]))

    def replace_note(self, request: Request) -> Response:
        draft = parse_draft(request.json_object())
        return _note_response(
            self._store.change(request.parameters["id"], lambda _: draft, revision=_expected_revision(request))
        )

    def change_note(self, request: Request) -> Response:
        payload = request.json_object()
        return _note_response(
            self._store.change(
                request.parameters["id"],
                lambda note: parse_patch(payload, note),
                revision=_expected_revision(request),
            )
        )

    def delete_note(self, request: Request) -> Response:
        self._store.delete(request.parameters["id"], revision=_expected_revision(request))
        return Response(204)


def _note_response(note: Note, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response.of_json(note.as_json(), status=status, headers={"ETag": f'"{note.revision}"', **(headers or {})})


def _expected_revision(request: Request) -> int | None:
    """The revision in ``If-Match``, ``None`` where there is none. Raises MalformedRequest."""
    text = request.headers.get("if-match", "").strip()
    if text in ("", "*"):
        return None
    number = text.removeprefix('"').removesuffix('"')
    if not (number.isascii() and number.isdigit()) or len(number) > 15:
        raise MalformedRequest("If-Match must hold the ETag of the note")
    return int(number)
