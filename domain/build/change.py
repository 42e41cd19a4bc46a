"""A change: what the coding model answers to a task, file by file."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from domain.errors import InvalidChange

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
    """What the coding model answers. ``summary`` becomes the commit's subject."""

    summary: str
    operations: tuple[FileOperation, ...]


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
