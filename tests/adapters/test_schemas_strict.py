"""Every schema stays inside what OpenAI's strict mode takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from adapters.schemas import ANSWERS, open_schemas
from adapters.schemas.strict_schema import strict_schema

ALLOWED = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs",
           "description"}  # fmt: skip
MAX_DEPTH = 5
MAX_PROPERTIES = 100


@dataclass(frozen=True, kw_only=True)
class Cat:
    """A cat."""

    kind: Literal["cat"]
    title: str
    default: int = 3
    lives: int | None = None


@dataclass(frozen=True, kw_only=True)
class Dog:
    kind: Literal["dog"]


@dataclass(frozen=True, kw_only=True)
class Home:
    pets: tuple[Cat | Dog, ...] = ()


def schemas_in(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and every schema inside it, not their maps by name."""
    yield schema
    for named in ("properties", "$defs"):
        for inner in schema.get(named, {}).values():
            yield from schemas_in(inner)
    for inner in [schema["items"]] if "items" in schema else []:
        yield from schemas_in(inner)
    for inner in schema.get("anyOf", []):
        yield from schemas_in(inner)


def depth(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> int:
    """Levels of objects, with references followed."""
    if "$ref" in schema:
        return depth(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema["items"]] if "items" in schema else []
    return (schema.get("type") == "object") + max((depth(one, definitions) for one in inner), default=0)


def assert_strict(whole: Mapping[str, Any]) -> None:
    properties = 0
    for schema in schemas_in(whole):
        assert set(schema) <= ALLOWED, schema
        assert "$ref" not in schema or set(schema) == {"$ref"}, "nothing may stand beside a reference"
        assert {"type", "$ref", "anyOf"} & set(schema), schema
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            properties += len(schema["properties"])
    assert whole["type"] == "object", "the root is an object"
    assert properties <= MAX_PROPERTIES
    assert depth(whole, whole.get("$defs", {})) <= MAX_DEPTH


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_schema_of_every_answer_is_strict(name: str) -> None:
    schema = open_schemas().schema(name)
    assert_strict(schema)
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_class_of_an_answer_says_what_it_is(name: str) -> None:
    schema = open_schemas().schema(name)
    for one in [schema, *schema.get("$defs", {}).values()]:
        assert len(one["description"]) > 10


def test_a_property_that_is_named_like_a_keyword_stays() -> None:
    task = open_schemas().schema("Plan")["$defs"]["PlannedTask"]
    assert task["properties"]["title"] == {"type": "string"}
    assert "title" in task["required"]


def test_alternatives_literals_and_defaults_become_strict() -> None:
    schema = strict_schema(TypeAdapter(Home).json_schema())
    assert_strict(schema)
    cat = schema["$defs"]["Cat"]
    assert cat["properties"] == {
        "kind": {"type": "string", "enum": ["cat"]},
        "title": {"type": "string"},
        "default": {"type": "integer"},
        "lives": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }
    assert schema["properties"]["pets"]["items"] == {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}


def test_the_schema_that_was_given_is_left_alone() -> None:
    given = {"type": "object", "title": "T", "properties": {"a": {"type": "string", "default": "x"}}}
    before = json.dumps(given)
    strict_schema(given)
    assert json.dumps(given) == before
