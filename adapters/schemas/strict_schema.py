"""JSON schemas inside the subset that OpenAI's strict mode takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOISE = ("title", "default", "examples")
_KEYED_BY_NAME = ("properties", "$defs")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """pydantic's schema with every property required, nothing additional, and no word that strict mode refuses."""
    strict = {key: _inside(key, value) for key, value in schema.items() if key not in _NOISE}
    if "const" in strict:
        strict["enum"] = [strict.pop("const")]
    if "oneOf" in strict:
        strict["anyOf"] = strict.pop("oneOf")
    if strict.get("type") == "object":
        strict["required"] = list(strict.get("properties", {}))
        strict["additionalProperties"] = False
    return strict


def _inside(key: str, value: Any) -> Any:
    if key in _KEYED_BY_NAME:
        return {name: strict_schema(sub) for name, sub in value.items()}
    if isinstance(value, list):
        return [strict_schema(item) if isinstance(item, Mapping) else item for item in value]
    return strict_schema(value) if isinstance(value, Mapping) else value
