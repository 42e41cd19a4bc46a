"""The answers file: which text answers which call, and which faults come before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from adapters.models.scripted.call import Call
from domain.errors import InvalidInput

Kind = Literal[
    "rate_limited", "server_error", "refused", "context_length",
    "cut", "slow", "hang",
    "empty", "malformed_json", "cut_json", "prose", "wrong_schema", "huge",
]  # fmt: skip
Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fault(_Part):
    """``retry_after`` seconds for rate_limited and server_error, ``seconds`` for slow; ``turn`` when not the first."""

    kind: Kind
    retry_after: float | None = Field(default=None, ge=0)
    seconds: float = Field(default=1.0, ge=0)
    turn: Count | None = None


class Tokens(_Part):
    """What the answer is billed as, instead of a quarter of its characters."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)


class Entry(_Part):
    """One answer, given as exactly one of ``answer`` (sent as JSON), ``text`` (as it is) and ``file`` (its content)."""

    role: str = Field(min_length=1)
    task: str | None = None
    attempt: Count = 1
    turn: Count | None = None
    answer: dict[str, Any] | None = None
    text: str | None = None
    file: str | None = None
    usage: Tokens | None = None
    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if sum(given is not None for given in (self.answer, self.text, self.file)) != 1:
            raise ValueError("give exactly one of answer, text and file")
        return self

    @property
    def place(self) -> str:
        """How a message names it: ``Change/tag-api/1``."""
        parts = (self.role, self.task or "*", str(self.attempt), *([str(self.turn)] if self.turn else []))
        return "/".join(parts)

    def fits(self, call: Call) -> bool:
        """Whether this entry may answer ``call``."""
        return (
            self.role == call.role
            and self.attempt == call.attempt
            and self.task in (None, *call.tasks)
            and self.turn in (None, call.turn)
        )

    def faults_of(self, turn: int) -> tuple[Fault, ...]:
        """The faults that come before the answer in that turn; without a turn of their own they are in the first."""
        return tuple(fault for fault in self.faults if (fault.turn or self.turn or 1) == turn)


class Script:
    """Entries and the texts they answer with."""

    def __init__(self, entries: Sequence[tuple[Entry, str]]) -> None:
        self._entries = list(entries)

    def find(self, call: Call) -> tuple[Entry, str] | None:
        """The most specific entry that fits, and its text: a named task counts more than a named turn."""
        fitting = [pair for pair in self._entries if pair[0].fits(call)]
        return max(fitting, key=lambda pair: (pair[0].task is not None, pair[0].turn is not None), default=None)

    def places(self) -> str:
        """What is known, for messages."""
        return ", ".join(entry.place for entry, _ in self._entries)


def load_script(path: Path) -> Script:
    """Read and check the whole file. Raises InvalidInput with the file, the entry and the reason."""
    try:
        entries = TypeAdapter(list[Entry]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput(f"{path}: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise InvalidInput(f"{path}: {_first_problem(error)}") from error
    places = [entry.place for entry in entries]
    for number, (entry, place) in enumerate(zip(entries, places, strict=True), 1):
        if place in places[: number - 1]:
            raise InvalidInput(f"{path}: entry {number}: {entry.place} is answered twice")
    return Script([(entry, _text(entry, path, number)) for number, entry in enumerate(entries, 1)])


def _text(entry: Entry, path: Path, number: int) -> str:
    try:
        if entry.file is not None:
            return (path.parent / entry.file).read_text(encoding="utf-8")
        return entry.text if entry.text is not None else json.dumps(entry.answer, ensure_ascii=False)
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise InvalidInput(f"{path}: entry {number}: {error}") from error


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    number, *field = first["loc"] or ("",)
    where = f"entry {number + 1}: " if isinstance(number, int) else ""
    return where + "".join(f"{part}: " for part in field) + str(first["msg"])
