"""Mending broken JSON, and seeing whether the mending guessed.

json-repair always finds something. What it found is trusted only when the brackets close by themselves and when every
string of the result stands in the text, in order, with nothing but punctuation between: then a comma or a quote was
mended, and no word was dropped, added or moved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair

MAX_CHARACTERS = 32 * 1024
MAX_DEPTH = 32

CUT_OFF = "the answer is cut off: it ends before its last bracket or quote is closed"

NO_JSON = "the answer holds no JSON object"

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]++|\\.)*+(?P<close>"|\\?\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<bracket>[{}\[\]()])',
    re.DOTALL,
)
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
_QUOTES = frozenset("\"'`\u2018\u2019\u201c\u201d")
_EMPTY = '""'
_BETWEEN = re.compile(r"[\s\]}:,\[{]*")
_PAIRS = {"}": "{", "]": "[", ")": "("}


@dataclass(frozen=True, slots=True)
class Mended:
    """``value`` is None when nothing was found; ``doubts`` say why the value may be a guess."""

    value: Any
    doubts: tuple[str, ...]


def mended(text: str) -> Mended:
    """Mend ``text`` with json-repair. Raises RecursionError."""
    start = re.search(r"[{\[]", text)
    piece = text[start.start() :] if start else text
    shape = _shape(piece)
    if len(text) > MAX_CHARACTERS or shape.depth > MAX_DEPTH:
        return Mended(None, (CUT_OFF if shape.is_open else "the answer is no JSON and too large to be mended",))
    reading = _reading(text, shape, keep_ends=False)
    if not reading.doubts or shape.is_open or shape.is_crossed:
        return reading
    careful = _reading(text, shape, keep_ends=True)
    return reading if careful.doubts else careful


def _reading(text: str, shape: _Shape, *, keep_ends: bool) -> Mended:
    """``keep_ends``: with it json-repair leaves a line break at the end of a string, but mends less."""
    try:
        value = json_repair.loads(text, skip_json_loads=True, stream_stable=keep_ends)
    except ValueError:
        value = ""
    if value == "":
        return Mended(None, (CUT_OFF if shape.is_open else NO_JSON,))
    return Mended(value, tuple(_doubts(shape, value)))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a look at brackets and strings alone tells. ``code`` is the text without comments."""

    is_open: bool
    is_crossed: bool
    depth: int
    code: str


def _shape(piece: str) -> _Shape:
    stack: list[str] = []
    depth, is_open, is_crossed = 0, False, False
    code: list[str] = []
    position = 0
    for token in _TOKEN.finditer(piece):
        code.append(piece[position : token.start() if token["comment"] else token.end()])
        position = token.end()
        bracket = token["bracket"]
        if token["string"]:
            is_open = token["close"] != '"'
        elif bracket in _PAIRS.values():
            stack.append(bracket)
            depth = max(depth, len(stack))
        elif bracket in _PAIRS:
            is_crossed = is_crossed or not stack or stack.pop() != _PAIRS[bracket]
    code.append(piece[position:])
    return _Shape(is_open or bool(stack), is_crossed, depth, "".join(code))


def _doubts(shape: _Shape, value: Any) -> Iterator[str]:
    if shape.is_open:
        yield CUT_OFF
    elif shape.is_crossed:
        yield "the answer's brackets do not match"
    elif isinstance(value, list) and shape.code.startswith("{"):
        yield "the answer holds more than one JSON object: give exactly one"
    elif not _only_punctuation_differs(shape.code, value):
        yield "the answer is no JSON: a quote or a backslash inside a string is not escaped, or a comma is missing"


def _only_punctuation_differs(code: str, value: Any) -> bool:
    try:
        source = _ESCAPE.sub(_unescaped, code)
    except ValueError:
        return False
    position = 0
    for part, is_value in _parts(value):
        found = source.find(part, position)
        end = found + len(part)
        around = (source[max(position, found - 1) : found], source[end : end + 1])
        quotes = 0 if part == _EMPTY else sum(mark in _QUOTES for mark in around)
        if found < 0 or quotes == 1 or (is_value and quotes == 0):
            return False
        if not _BETWEEN.fullmatch(source, position, found - quotes // 2):
            return False
        position = end + quotes // 2
    rest = source[position : source.rfind("}") + 1] if isinstance(value, dict) else source[position:]
    return _BETWEEN.fullmatch(rest) is not None


def _unescaped(escape: re.Match[str]) -> str:
    return str(json.loads(f'"{escape[0]}"', strict=True))


def _parts(value: Any) -> Iterator[tuple[str, bool]]:
    """Everything with a spelling of its own, in the order of the text, and whether it has to stand in quotes."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield key or _EMPTY, False
            yield from _parts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, str):
        yield value or _EMPTY, value != ""
    else:
        yield json.dumps(value), False
