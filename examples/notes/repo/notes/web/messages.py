"""Requests and responses as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from notes.errors import MalformedRequest, UnsupportedMediaType


@dataclass(frozen=True)
class Request:
    """One request. Header names are in lower case; ``parameters`` are the variable parts of the route."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def json_object(self) -> dict[str, object]:
        """The body as a JSON object. Raises UnsupportedMediaType and MalformedRequest."""
        media_type = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type != "application/json":
            raise UnsupportedMediaType("the body must be sent as application/json")
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise MalformedRequest("the body is not valid JSON") from error
        if not isinstance(value, dict):
            raise MalformedRequest("the body must be a JSON object")
        return value


@dataclass(frozen=True)
class Response:
    """One response; ``body`` is already encoded."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        body = json.dumps(value).encode() + b"\n"
        return cls(status, body, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})
