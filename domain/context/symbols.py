"""What is known of one file by reading it: its symbols, what it calls, what it imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A definition. ``kind`` is "class", "function", "method" or "type"; ``line`` and ``end`` count from 1.

    ``signature`` is its first line as written, cut at 200 characters; ``depth`` how many symbols it lies in.
    """

    name: str
    kind: str
    line: int
    end: int
    signature: str
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """``calls`` are names that the file calls or imports, each once; ``imports`` are modules as it writes them.

    ``skipped`` says why nothing is known ("" when the file was read): "binary", "minified", "too large".
    """

    symbols: tuple[Symbol, ...] = ()
    calls: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What a tree's files hold of a query's words. A file is made of passages: 0 is what lies outside of symbols, ``n``
    its n-th symbol without the symbols inside.

    ``files``, ``passages`` and ``length`` (words) are of the whole tree. ``lengths`` has the passages' lengths of every
    file that holds a word; ``counts`` is word → path → passage → how often.
    """

    files: int
    passages: int
    length: int
    lengths: Mapping[str, tuple[int, ...]]
    counts: Mapping[str, Mapping[str, Mapping[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Per name, the paths that define it and those that call it, sorted."""

    defined: Mapping[str, tuple[str, ...]]
    called: Mapping[str, tuple[str, ...]]


def outline(symbols: tuple[Symbol, ...], *, most: int = 400) -> str:
    """One line a symbol, indented by its depth, with the number of its line; at most ``most`` of them."""
    lines = [f"{s.line:5} | {'    ' * s.depth}{s.signature}\n" for s in symbols[:most]]
    if len(symbols) > most:
        lines.append(f"      | and {len(symbols) - most} more\n")
    return "".join(lines)
