"""From what clients send to values that can be trusted. Every problem of a request is reported at once."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from notes.errors import InvalidFields, Problem
from notes.model import Note, NoteDraft, NoteFilter

MAX_TITLE = 200
MAX_BODY = 20_000
MAX_SEARCH = 100
DEFAULT_LIMIT = 20
MAX_LIMIT = 100

FIELDS = ("title", "body", "pinned")


def parse_draft(payload: Mapping[str, object]) -> NoteDraft:
    """A whole note, as POST and PUT send it. Raises InvalidFields."""
    problems = _unknown_fields(payload)
    if "title" not in payload:
        problems.append(Problem("title", "is required"))
    return _draft(payload, NoteDraft(title="-"), problems)


def parse_patch(payload: Mapping[str, object], note: Note) -> NoteDraft:
    """Some fields of a note, as PATCH sends them; the others stay as they are in ``note``. Raises InvalidFields."""
    problems = _unknown_fields(payload)
    if not payload:
        problems.append(Problem("note", "has no field to change"))
    return _draft(payload, NoteDraft(title=note.title, body=note.body, pinned=note.pinned), problems)


def parse_filter(query: Mapping[str, list[str]]) -> NoteFilter:
    """The filter of a listing: ``pinned`` and ``q``. Raises InvalidFields."""
    problems: list[Problem] = []
    text = _single(query, "q", problems).strip()
    if len(text) > MAX_SEARCH:
        problems.append(Problem("q", f"has more than {MAX_SEARCH} characters"))
    pinned = _single(query, "pinned", problems)
    if pinned not in ("", "true", "false"):
        problems.append(Problem("pinned", "must be true or false"))
    if problems:
        raise InvalidFields(problems)
    return NoteFilter(pinned={"true": True, "false": False}.get(pinned), text=text)


def parse_paging(query: Mapping[str, list[str]]) -> tuple[int, int | None]:
    """``limit`` and the position that ``cursor`` stands for. Raises InvalidFields."""
    problems: list[Problem] = []
    limit = _limit(_single(query, "limit", problems), problems)
    position = _position(_single(query, "cursor", problems), problems)
    if problems:
        raise InvalidFields(problems)
    return limit, position


def encode_cursor(position: int | None) -> str | None:
    """Opaque to clients, so that what is inside may change."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(f"p{position}".encode()).decode().rstrip("=")


def check_query_names(query: Mapping[str, list[str]], allowed: tuple[str, ...]) -> None:
    """Raises InvalidFields for a parameter that would silently do nothing."""
    unknown = [name for name in query if name not in allowed]
    if unknown:
        raise InvalidFields([Problem(name, "is not a known parameter") for name in unknown])


def _unknown_fields(payload: Mapping[str, object]) -> list[Problem]:
    return [Problem(name, "is not a known field") for name in payload if name not in FIELDS]


def _draft(payload: Mapping[str, object], current: NoteDraft, problems: list[Problem]) -> NoteDraft:
    draft = NoteDraft(
        title=_title(payload.get("title", current.title), problems),
        body=_body(payload.get("body", current.body), problems),
        pinned=_pinned(payload.get("pinned", current.pinned), problems),
    )
    if problems:
        raise InvalidFields(problems)
    return draft


def _title(value: object, problems: list[Problem]) -> str:
    if not isinstance(value, str):
        problems.append(Problem("title", "must be a text"))
        return ""
    title = " ".join(value.split())
    if not title:
        problems.append(Problem("title", "is empty"))
    elif len(title) > MAX_TITLE:
        problems.append(Problem("title", f"has more than {MAX_TITLE} characters"))
    elif not title.isprintable():
        problems.append(Problem("title", "has characters that cannot be shown"))
    return title


def _body(value: object, problems: list[Problem]) -> str:
    if not isinstance(value, str):
        problems.append(Problem("body", "must be a text"))
        return ""
    if len(value) > MAX_BODY:
        problems.append(Problem("body", f"has more than {MAX_BODY} characters"))
    elif not _is_unicode(value):
        problems.append(Problem("body", "is not valid Unicode"))
    return value


def _is_unicode(text: str) -> bool:
    # JSON can spell half of a surrogate pair, which no UTF-8 can hold.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _pinned(value: object, problems: list[Problem]) -> bool:
    if not isinstance(value, bool):
        problems.append(Problem("pinned", "must be true or false"))
    return value is True


def _single(query: Mapping[str, list[str]], name: str, problems: list[Problem]) -> str:
    values = query.get(name, [""])
    if len(values) > 1:
        problems.append(Problem(name, "is given more than once"))
    return values[0]


def _limit(text: str, problems: list[Problem]) -> int:
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 6) or not 1 <= int(text) <= MAX_LIMIT:
        problems.append(Problem("limit", f"must be a number from 1 to {MAX_LIMIT}"))
        return DEFAULT_LIMIT
    return int(text)


def _position(cursor: str, problems: list[Problem]) -> int | None:
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    if not text.startswith("p") or not text[1:].isdigit() or len(text) > 18:
        problems.append(Problem("cursor", "is not one that this service gave out"))
        return None
    return int(text[1:])
