"""Settings as the text of a ``mendwork.toml``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def written(values: Mapping[str, Any]) -> str:
    """TOML of nested mappings, lists, texts, numbers and truths; what is None is left out."""
    return "\n".join(_table(values, ())) + "\n"


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    there = {name: value for name, value in values.items() if value is not None}
    plain = {name: value for name, value in there.items() if not isinstance(value, Mapping)}
    if path and (plain or not there):
        yield f"\n[{'.'.join(map(_text, path))}]"
    yield from (f"{_text(name)} = {_value(value)}" for name, value in plain.items())
    for name, value in there.items():
        if isinstance(value, Mapping):
            yield from _table(value, (*path, name))


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _text(str(value))


def _text(text: str) -> str:
    """A JSON text is a TOML text, but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
