"""What a model's change does to a tree: judged on the tree itself, so that no link is followed and nothing can be
swapped between a check and its use."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping

from adapters.git.sources import Entry
from domain.build.change import FileOperation, edited, path_problem
from domain.errors import InvalidChange
from domain.ports.workspace import CommitRequest

PROGRAM = "100755"
_CREATED = "100644"
_REASONS = 5


def check_spelling(request: CommitRequest) -> None:
    """Judge a change without looking at the tree. Raises InvalidChange with the first few reasons."""
    operations = request.change.operations
    if not operations:
        raise InvalidChange("the change names no file")
    if len(operations) > request.files:
        raise InvalidChange(f"the change touches {len(operations)} files; at most {request.files} are allowed")
    refuse([reason for operation in operations for reason in _misspelled(operation)] + _twins(operations))


def refuse(reasons: list[str]) -> None:
    """Raise InvalidChange when there are reasons to."""
    if reasons:
        more = f"; and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
        raise InvalidChange("; ".join(reasons[:_REASONS]) + more)


def mode_after(operation: FileOperation, entries: Mapping[str, Entry]) -> str:
    """The mode that the written file has, that of a deleted one included. Raises InvalidChange when the tree, as it is
    after the operations before this one, does not allow it."""
    path = operation.path
    _check_way(path, entries)
    entry = entries.get(path)
    if entry and entry.kind in ("symlink", "submodule"):
        raise InvalidChange(f"{path}: is a {entry.kind} and may not be changed")
    if entry is None and any(other.startswith(f"{path}/") for other in entries):
        raise InvalidChange(f"{path}: is a folder")
    if operation.action == "create":
        if entry:
            raise InvalidChange(f"{path}: exists already; use replace or edit")
        return _CREATED
    if entry is None:
        raise InvalidChange(f"{path}: does not exist, so there is nothing to {operation.action}")
    return PROGRAM if entry.kind == "executable" else _CREATED


def moved_programs(request: CommitRequest, entries: Mapping[str, Entry]) -> frozenset[str]:
    """The names, without folders, of the executable files that the change deletes: a new file of such a name is where
    the program moved, and stays executable."""
    gone = (operation.path for operation in request.change.operations if operation.action == "delete")
    return frozenset(path.rpartition("/")[2] for path in gone if path in entries and entries[path].mode == PROGRAM)


def content_after(operation: FileOperation, old: bytes) -> bytes | None:
    """The bytes that the file has after the operation, None when it is gone. Raises InvalidChange."""
    if operation.action == "delete":
        return None
    if operation.action != "edit":
        return _encoded(operation.path, operation.content)
    if not operation.edits:
        raise InvalidChange(f"{operation.path}: has no edits")
    try:
        text = old.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidChange(f"{operation.path}: is not UTF-8 text, so it can only be replaced or deleted") from None
    return _encoded(operation.path, edited(operation.path, text, operation.edits))


def _check_way(path: str, entries: Mapping[str, Entry]) -> None:
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if entry := entries.get(above):
            kind = "file" if entry.kind == "executable" else entry.kind
            raise InvalidChange(f"{path}: leads through {above}, which is a {kind}")


def _misspelled(operation: FileOperation) -> list[str]:
    if problem := path_problem(operation.path):
        return [f"{operation.path[:200]!a}: {problem}"]
    if operation.action not in ("create", "replace", "edit", "delete"):
        return [f"{operation.path}: unknown action {operation.action[:40]!r}"]
    return []


def _twins(operations: tuple[FileOperation, ...]) -> list[str]:
    """Paths that are one file where case or the spelling of accents does not count."""
    paths = [operation.path for operation in operations]
    counts = Counter(_folded(path) for path in paths)
    twins = sorted({path for path in paths if counts[_folded(path)] > 1})
    return [f"{path[:200]!a}: the change names this file twice" for path in twins]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _encoded(path: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidChange(f"{path}: has characters that cannot be written as UTF-8") from None
