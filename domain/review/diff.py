"""A unified diff as git prints it: the paths that it touches, and what of it fits into a budget of bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST_NAMED = 20
_CUT = "[the diff is cut here"
# A line of a file's content never starts a part: git puts a sign before each.
_PART = re.compile(r"^(?=diff --git )", re.MULTILINE)
_BODY = re.compile(r"^(?:@@ |Binary files )", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPart:
    """One file's part. ``path`` is its name after the change, or before it when the change deletes the file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDiff:
    """``text`` holds whole parts only; ``left_out`` are the paths of those that did not fit."""

    text: str
    left_out: tuple[str, ...] = ()


def diff_parts(diff: str) -> tuple[DiffPart, ...]:
    """The parts in their order; a text that is no diff has none."""
    return tuple(_part(text) for text in _PART.split(diff) if text.startswith("diff --git "))


def is_cut(diff: str) -> bool:
    """Whether the diff was too large to be read whole: then it touches more than it shows."""
    return diff.rstrip("\n").rpartition("\n")[2].startswith(_CUT)


def fit_diff(parts: Iterable[DiffPart], *, limit: int) -> ShownDiff:
    """At most ``limit`` bytes of UTF-8: each part whole, or named as left out."""
    shown: list[str] = []
    left_out: list[str] = []
    for part in parts:
        size = len(part.text.encode(errors="replace"))
        if size > limit:
            left_out.append(part.path)
            continue
        shown.append(part.text)
        limit -= size
    return ShownDiff(text="".join(shown), left_out=tuple(left_out))


def fit_change(change: str, *, limit: int) -> str:
    """A diff, or another text of a model's change, in about ``limit`` bytes; its last line says what is left out."""
    size = len(change.encode(errors="replace"))
    if size <= limit:
        return change
    parts = diff_parts(change)
    if not parts:
        head = change.encode(errors="replace")[: max(limit, 0)].decode(errors="ignore")
        return f"{head}\n[cut here: it has {size} bytes]\n"
    shown = fit_diff(parts, limit=limit)
    names, more = ", ".join(shown.left_out[:MOST_NAMED]), len(shown.left_out) - MOST_NAMED
    return f"{shown.text}[not shown, because they do not fit: {names}{f' and {more} more' if more > 0 else ''}]\n"


def _part(text: str) -> DiffPart:
    head = _BODY.split(text, maxsplit=1)[0].split("\n")
    named = dict(line.split(" ", 1) for line in head if line.startswith(("--- ", "+++ ")))
    after, before = _side(named.get("+++", "")), _side(named.get("---", ""))
    moved = next((_unquoted(line.removeprefix("rename to ")) for line in head if line.startswith("rename to ")), "")
    return DiffPart(path=moved or after or before or _both(head[0]), text=text)


def _side(name: str) -> str:
    """``a/path`` without its prefix, "" for /dev/null and for nothing."""
    plain = _unquoted(name)
    return "" if plain == "/dev/null" else plain[2:]


def _both(line: str) -> str:
    """The one path of ``diff --git a/path b/path``, where no other line names it: a new mode, a binary file."""
    rest = line.removeprefix("diff --git ")
    return _side(rest[: len(rest) // 2])


def _unquoted(name: str) -> str:
    """A path as git prints it: in quotes, with escapes, when it holds what is unusual; before a tab for a space."""
    name = name.removesuffix("\t")
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    return _ESCAPE.sub(_byte, name[1:-1].encode(errors="replace")).decode(errors="backslashreplace")


def _byte(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() else _LETTERS.get(code, code)
