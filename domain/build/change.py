"""A change: what the coding model answers to a task, file by file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from domain.errors import InvalidChange


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
    """Apply ``edits`` in order. Raises InvalidChange when a search text occurs not exactly once."""
    for number, edit in enumerate(edits, 1):
        count = text.count(edit.search) if edit.search else 0
        if count != 1:
            found = "an empty search text" if not edit.search else f"a search text that occurs {count} times"
            raise InvalidChange(f"{path}: edit {number} has {found}; it must occur exactly once")
        text = text.replace(edit.search, edit.replace)
    return text


def path_problem(path: str) -> str | None:
    """Why a path of a model may not be written, judged by its spelling alone; None when it may.

    Symlinks are the adapter's to refuse: they are seen only when the file is opened.
    """
    parts = path.split("/")
    if not path or "\0" in path or "\\" in path or any(ord(c) < 32 for c in path):
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
    """``.git`` as any file system git cares about would read it (git's own ``verify_path`` rules)."""
    plain = part.rstrip(". ").split(":")[0].lower()
    return plain in (".git", "git~1") or "".join(c for c in plain if c.isprintable() and c.isascii()) == ".git"
