"""A change: what the coding model answers to a task, file by file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from domain.errors import InvalidChange

MOST_NEEDS = 20
"""Paths that one answer may ask for."""

_NEAR = 3
# Control, format (invisible or direction-changing) and surrogate characters, line and paragraph separators.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace ``search``, which must occur exactly once in the file, by ``replace``."""

    search: str
    replace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperation:
    """One file. ``content`` is the whole text for create and replace, ``edits`` are for edit; else both are empty."""

    action: Literal["create", "replace", "edit", "delete"]
    path: str
    content: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the coding model answers. ``summary`` becomes the commit's subject.

    ``needs`` are paths that it has to see first; they count only where there are no operations.
    """

    summary: str
    operations: tuple[FileOperation, ...]
    needs: tuple[str, ...] = ()


def needed(change: Change, present: Iterable[str]) -> tuple[str, ...]:
    """The files that ``change`` asks to see, of those that are ``present``; () for a change that changes something.

    Raises InvalidChange when it asks for nothing that there is, with names that are near, or for too much.
    """
    if change.operations or not change.needs:
        return ()
    if len(change.needs) > MOST_NEEDS:
        raise InvalidChange(
            f"the answer needs {len(change.needs)} files; at most {MOST_NEEDS} can be asked for at once"
        )
    known = tuple(present)
    asked = tuple(dict.fromkeys(path.strip().removeprefix("./") for path in change.needs))
    found = tuple(path for path in asked if path in set(known))
    if not found:
        raise InvalidChange(
            f"the answer needs files that do not exist: {'; '.join(_missed(p, known) for p in asked[:5])}"
        )
    return found


def _missed(path: str, known: tuple[str, ...]) -> str:
    """Quoted and cut, with what may have been meant: the same name elsewhere, else a path spelled nearly so."""
    name = path.rpartition("/")[2]
    near = [other for other in known if other.rpartition("/")[2] == name] or get_close_matches(path, known, n=_NEAR)
    return f"{path[:200]!r}" + (f" (there is {', '.join(sorted(near)[:_NEAR])})" if near else "")


def edited(path: str, text: str, edits: tuple[Edit, ...]) -> str:
    """Apply ``edits`` in order. Raises InvalidChange when a search text occurs not exactly once.

    In a text whose lines all end in CRLF, plain line ends of an edit stand for CRLF: models rarely write them.
    """
    for number, edit in enumerate(edits, 1):
        search, replacement = (_with_line_ends_of(text, part) for part in (edit.search, edit.replace))
        if not search:
            raise InvalidChange(f"{path}: edit {number} has an empty search text")
        at = text.find(search)
        if at < 0:
            raise InvalidChange(f"{path}: the search text of edit {number} does not occur; it must occur exactly once")
        if text.find(search, at + 1) >= 0:
            raise InvalidChange(f"{path}: the search text of edit {number} occurs more than once; add lines around it")
        text = text[:at] + replacement + text[at + len(search) :]
    return text


def _with_line_ends_of(text: str, part: str) -> str:
    only_crlf = "\n" in text and text.count("\n") == text.count("\r\n")
    return part.replace("\n", "\r\n") if only_crlf and "\r" not in part else part


def path_problem(path: str) -> str | None:
    """Why a path of a model may not be written, judged by its spelling alone; None when it may.

    Symlinks are the adapter's to refuse: they are seen only when the file is opened.
    """
    parts = path.split("/")
    if not path or "\\" in path or any(unicodedata.category(c) in _UNSEEN for c in path):
        return "is empty or has characters that a path may not have"
    if path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        return "is absolute"
    if any(part in ("", ".", "..") for part in parts):
        return "has empty, '.' or '..' parts"
    if any(_is_git_folder(part) for part in parts):
        return "is inside .git"
    if len(path.encode()) > 1024 or any(len(part.encode()) > 255 for part in parts):
        return "is too long"
    return None


def _is_git_folder(part: str) -> bool:
    """``.git`` as any file system that git cares about would read it; NTFS drops dots and streams at the end."""
    plain = part.split(":")[0].rstrip(". ").lower()
    return plain in (".git", "git~1")
