"""What Temporal's lists of sagas are told: search attributes, written only when they change."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from domain.human.attributes import ATTRIBUTES, KEYWORD, KEYWORDS, NUMBER, TRUTH

_KEYS = {
    KEYWORD: SearchAttributeKey.for_keyword,
    KEYWORDS: SearchAttributeKey.for_keyword_list,
    NUMBER: SearchAttributeKey.for_float,
    TRUTH: SearchAttributeKey.for_bool,
}


class Attributes:
    """Of one saga. A run that goes on from another has what that one told, and tells it once more."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}

    def tell(self, **values: Any) -> None:
        """Each is a name of ``ATTRIBUTES`` with its value: one event in the history, or none when nothing changed."""
        changed = {name: value for name, value in values.items() if self._told.get(name) != value}
        if changed:
            self._told |= changed
            keys: dict[str, Any] = {name: _KEYS[ATTRIBUTES[name]](name) for name in changed}
            workflow.upsert_search_attributes([key.value_set(changed[name]) for name, key in keys.items()])
