"""On which line of a TOML file each key is given. The file itself is known to be valid."""

from __future__ import annotations

import tomllib
from collections.abc import Container, Mapping
from typing import Any

Keys = tuple[str, ...]
"""The path of a value: ("projects", "shop", "branch")."""


def leaves(values: Mapping[str, Any], above: Keys = ()) -> dict[Keys, Any]:
    """Every value that is no table, by its path. Lists are values, and so are empty tables."""
    found: dict[Keys, Any] = {}
    for key, value in values.items():
        keys = (*above, key)
        found |= leaves(value, keys) if isinstance(value, Mapping) and value else {keys: value}
    return found


def line_numbers(text: str) -> dict[Keys, int]:
    """The line, from 1, on which the statement begins that gives the value at a path, and those of tables' headers;
    of an array of tables the first.

    Each statement is parsed alone under its table's header: it ends with the first line that makes it whole.
    """
    numbers: dict[Keys, int] = {}
    header, statement, start = "", "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not statement:
            start = number
        statement += line + "\n"
        given = _parsed(header + statement)
        if given is None:
            continue
        if statement.lstrip().startswith("["):
            header = statement
        for keys in leaves(given):
            numbers.setdefault(keys, start)
        statement = ""
    return numbers


def covering(keys: Keys, given: Container[Keys]) -> Keys | None:
    """The longest beginning of ``keys`` that was given."""
    return next((keys[:length] for length in range(len(keys), 0, -1) if keys[:length] in given), None)


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
