"""Which blobs a text or a value names: anything that is spelled like a digest counts, so nothing needed is missed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

DIGITS = 64
_RUN = re.compile(rf"[0-9a-f]{{{DIGITS},}}")


def digests_in(text: str) -> Iterator[str]:
    """Every run of hex digits that is long enough. Of a longer one both ends: JSON's "\\u001b" before a digest is
    written in hex digits too."""
    for found in _RUN.finditer(text):
        run = found.group()
        yield run[:DIGITS]
        if len(run) > DIGITS:
            yield run[-DIGITS:]


def named_in(value: Any, what: str = "") -> dict[str, str]:
    """The digests in a JSON value, each with the key under which it lies first ("" in a list of nothing)."""
    found: dict[str, str] = {}
    if isinstance(value, str):
        found = dict.fromkeys(digests_in(value), what)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            for digest, name in {**named_in(key, what), **named_in(each, str(key))}.items():
                found.setdefault(digest, name)
    elif isinstance(value, list | tuple):
        for each in value:
            for digest, name in named_in(each, what).items():
                found.setdefault(digest, name)
    return found


def checksum(names: Mapping[str, str]) -> str:
    """What a recorded set of references has to add up to."""
    lines = "".join(f"{digest} {names[digest]}\n" for digest in sorted(names))
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
