"""What a coding model is shown of a repository, inside a budget of bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from domain.ports.workspace import TreeFile

MAX_LISTED = 2_000
MAX_NAMED = 20
_WORD = re.compile(r"[^\s\"'`:,;()<>\[\]|]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A file to show in full, or with ``text`` empty the reason why not in ``left_out``."""

    path: str
    text: str
    left_out: str = ""


def wanted_paths(planned: Iterable[str], tests: Iterable[str], tree: Iterable[TreeFile]) -> tuple[str, ...]:
    """The planned files and tests that exist, then the tests that belong to planned files by their names."""
    present = [f.path for f in tree if f.kind in ("file", "executable")]
    known = set(present)
    named = [path for path in (*planned, *tests) if path in known]
    stems = {PurePosixPath(path).stem for path in named}
    related = [path for path in present if _tested_stem(path) in stems]
    return tuple(dict.fromkeys([*named, *related]))


def named_paths(text: str, tree: Iterable[TreeFile]) -> tuple[str, ...]:
    """The files that a report names as words of their own, in the order of their first mention; at most twenty.

    A conflict, a finding or a failing test is about them, whether the plan knew it or not.
    """
    known = {f.path for f in tree if f.kind in ("file", "executable")}
    words = (word.rstrip(".") for word in _WORD.findall(text))
    return tuple(dict.fromkeys(word for word in words if word in known))[:MAX_NAMED]


def numbered(file: ContextFile) -> ContextFile:
    """The same with its line numbers, so that a reader can name a line without counting."""
    lines = file.text.removesuffix("\n").split("\n") if file.text else []
    return replace(file, text="".join(f"{number:5} | {line}\n" for number, line in enumerate(lines, 1)))


def fit(path: str, content: bytes, *, left: int) -> ContextFile:
    """Decode ``content`` if it is text and not longer than ``left`` bytes; say why not otherwise."""
    if len(content) > left:
        return ContextFile(path=path, text="", left_out=f"{len(content)} bytes do not fit")
    try:
        return ContextFile(path=path, text=content.decode())
    except UnicodeDecodeError:
        return ContextFile(path=path, text="", left_out="it is not text")


def listing(tree: Iterable[TreeFile]) -> tuple[str, ...]:
    """One line a file, at most ``MAX_LISTED``; the last line says how many more there are."""
    lines = [f"{f.path} ({f.size} bytes)" if f.kind == "file" else f"{f.path} ({f.kind})" for f in tree]
    rest = len(lines) - MAX_LISTED
    return (*lines[:MAX_LISTED], f"and {rest} more files") if rest > 0 else tuple(lines)


def _tested_stem(path: str) -> str:
    """``tests/test_api.py``, ``api_test.go`` and ``api.test.js`` all belong to ``api``; "" for what is no test."""
    stem = PurePosixPath(path).stem
    for mark in (".test", ".spec", "_test"):
        if stem.endswith(mark):
            return stem.removesuffix(mark)
    return stem.removeprefix("test_") if stem.startswith("test_") else ""
