"""What every section of the configuration is: frozen, known keys only, forgiving where a list is given as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class BadKey(ValueError):
    """What is wrong with one key of a section that is checked as a whole."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


class Section(BaseModel):
    """Unknown keys are errors that list the known ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known_only(cls, value: Any) -> Any:
        for key in value if isinstance(value, Mapping) else ():
            if key not in cls.model_fields:
                raise BadKey(key, unknown_key(cls, key))
        return value


def argv(value: Any) -> Any:
    """A command that is given as one text, in words."""
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def names(value: Any) -> Any:
    """A list that is given as one text with commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


def inside(folder: str) -> str:
    """A folder of the checkout. Raises ValueError for one that leads outside."""
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts or "\0" in folder:
        raise ValueError("has to be a folder inside the checkout")
    return folder


def unknown_key(section: type[BaseModel], key: str) -> str:
    """The sentence for a key that ``section`` does not have, with those it has."""
    return unknown(key, [name for name in section.model_fields if name != "root"])


def unknown(key: str, known: Iterable[str]) -> str:
    """The sentence for a key that is none of ``known``."""
    return f"unknown key {key!r}; known: {', '.join(sorted(known))}"
