"""From what a model wrote to a JSON value, and what makes that reading doubtful."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adapters.schemas.mending import mended

MAX_BYTES = 4 * 1024 * 1024

_VALUE_START = re.compile(r'\{\s*["}]|\[\s*["\[{\]\d-]')


class Unreadable(ValueError):
    """The text holds no JSON that could be read; ``str(error)`` is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """``value`` is the best reading. ``repaired``: the text was not JSON as it stood.

    ``doubts`` are sentences that say why this reading may not be what was meant; empty means that it is.
    """

    value: Any
    repaired: bool
    doubts: tuple[str, ...] = ()


def parse_json(text: str) -> Parsed:
    """Read JSON as it stands, else out of fences and prose, else mended. Raises Unreadable, and nothing else."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Unreadable("the answer is longer than 4 MiB")
    text = text.strip("\ufeff \t\r\n")
    try:
        return _as_it_stands(text) or _embedded(text) or _mended(text)
    except RecursionError:
        raise Unreadable("the answer is nested too deeply") from None


def _as_it_stands(text: str) -> Parsed | None:
    reader = _Reader(strict=True)
    try:
        value, end = reader.at(text, 0)
    except ValueError:
        return None
    return Parsed(value, False, reader.doubts()) if end == len(text) else None


def _embedded(text: str) -> Parsed | None:
    """The one whole JSON object between prose, fences and citations such as ``[1]``."""
    reader = _Reader(strict=False)
    try:
        found = list(_whole_values(reader, text))
    except ValueError:
        return None
    likely = [value for value in found if value and isinstance(value, dict)] or found
    if not likely or any(value != likely[0] for value in likely):
        return None
    return Parsed(likely[0], True, reader.doubts())


def _whole_values(reader: _Reader, text: str) -> Iterator[Any]:
    """Raises ValueError at the first value that is broken, or inside one: what comes after may be a part of it."""
    position = 0
    while start := _VALUE_START.search(text, position):
        if not _is_prose(text[position : start.start()]):
            raise ValueError("inside another value")
        value, position = reader.at(text, start.start())
        yield value
    if not _is_prose(text[position:]):
        raise ValueError("another value's end")


def _is_prose(text: str) -> bool:
    return text.count("{") == text.count("}") and text.count("[") == text.count("]")


def _mended(text: str) -> Parsed:
    mend = mended(text)
    if mend.value is None:
        raise Unreadable(*mend.doubts)
    return Parsed(mend.value, True, mend.doubts)


class _Reader:
    """The standard library's decoder, which remembers keys that were given twice."""

    def __init__(self, *, strict: bool) -> None:
        self._twice: list[str] = []
        self._decoder = json.JSONDecoder(
            strict=strict, object_pairs_hook=self._object, parse_constant=self._not_a_number
        )

    def at(self, text: str, position: int) -> tuple[Any, int]:
        """The value that starts there and where it ends. Raises ValueError, RecursionError."""
        return self._decoder.raw_decode(text, position)

    def doubts(self) -> tuple[str, ...]:
        return tuple(f"the key {key[:80]!r} is given twice in one object" for key in self._twice[:3])

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            self._twice += sorted({key for key in keys if keys.count(key) > 1})
        return value

    def _not_a_number(self, name: str) -> Any:
        raise ValueError(f"{name} is no JSON")
