"""Keys of a file that no section knows, each with the nearest one that it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from adapters.cli.config.lines import Keys
from adapters.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """``known`` are the keys that its section has."""

    keys: Keys
    known: Sequence[str]

    def sentence(self, *, where: str) -> str:
        """For people; ``where`` is the file and the line."""
        near = get_close_matches(self.keys[-1], self.known, n=1)
        cure = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self.known)}"
        return f"{where}: unknown key {'.'.join(self.keys)!r}; {cure}"


def mistakes(values: Mapping[str, Any]) -> Sequence[Mistake]:
    """All of a file's, in its order."""
    return list(_of_table((name for name in Settings.model_fields if name != "root"), Settings, values, ()))


def _of_table(names: Iterable[str], section: Any, values: Mapping[str, Any], above: Keys) -> Iterator[Mistake]:
    known = sorted(names)
    for key, value in values.items():
        keys = (*above, key)
        if key not in known:
            yield Mistake(keys=keys, known=known)
        elif isinstance(section, type) and issubclass(section, BaseModel):
            yield from _of_value(section.model_fields[key].annotation, value, keys)


def _of_value(kind: Any, value: Any, keys: Keys) -> Iterator[Mistake]:
    """``kind`` is the annotation of what ``value`` is to become."""
    inner = get_args(kind)
    if isinstance(value, Mapping) and get_origin(kind) is dict:
        for name, below in value.items():
            yield from _of_value(inner[1], below, (*keys, name))
    elif isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _of_table(kind.model_fields, kind, value, keys)
    elif isinstance(value, Mapping) and isinstance(kind, type) and is_dataclass(kind):
        yield from _of_table((each.name for each in fields(kind)), kind, value, keys)
    elif isinstance(value, list) and get_origin(kind) is tuple:
        for each in value:
            yield from _of_value(inner[0], each, keys)
    else:
        for each in inner:  # what may be left out, and what is checked further
            yield from _of_value(each, value, keys)
