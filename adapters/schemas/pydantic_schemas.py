"""Answer schemas by pydantic: the schema and the strict validation both come from the domain's own dataclasses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.schemas.json_text import Unreadable, parse_json
from adapters.schemas.mending import CUT_OFF
from adapters.schemas.strict_schema import strict_schema
from domain.errors import UnknownName
from domain.ports.language_model import Decoded

MAX_PROBLEMS = 10
_WORDS = {
    "missing": "is missing",
    "unexpected_keyword_argument": "is not a known key",
    "json_invalid": "a string holds half a surrogate pair, or the answer is nested too deeply",
}


class PydanticSchemas:
    """``classes`` are the domain classes that models answer with, by the name of their schema."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self._classes = {name: _AnswerClass(known) for name, known in classes.items()}

    def schema(self, name: str) -> Mapping[str, Any]:
        """See AnswerSchemas."""
        return self._class(name).schema

    def decode(self, name: str, text: str, *, cut: bool = False) -> Decoded:
        """See AnswerSchemas."""
        answer_class = self._class(name)
        if cut:
            return Decoded(value=None, problems=(CUT_OFF,))
        try:
            parsed = parse_json(text)
        except Unreadable as error:
            return Decoded(value=None, problems=(str(error),))
        if parsed.doubts:
            return Decoded(value=None, problems=parsed.doubts[:MAX_PROBLEMS])
        try:
            return Decoded(value=answer_class.canonical(parsed.value), repaired=parsed.repaired)
        except ValidationError as error:
            return Decoded(value=None, problems=tuple(_sentences(error)))

    def _class(self, name: str) -> _AnswerClass:
        if name not in self._classes:
            raise UnknownName.among("answer schema", name, self._classes)
        return self._classes[name]


class _AnswerClass:
    def __init__(self, known: type) -> None:
        self._known = known

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._known)

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return strict_schema(self._adapter.json_schema(mode="validation"))

    def canonical(self, value: Any) -> str:
        """Raises ValidationError. Validated as JSON text, where strict mode takes arrays for tuples."""
        instance = self._adapter.validate_json(json.dumps(value), strict=True, extra="forbid")
        plain = self._adapter.dump_python(instance, mode="json")
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
        words = _WORDS.get(problem["type"], problem["msg"])
        yield "".join(c for c in f"${path}: {words}"[:300] if c.isprintable())
