"""What goes back over HTTP: the scripted answer, or a fault in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.models.scripted.call import Call
from adapters.models.scripted.script import Entry, Fault

HUGE_CHARACTERS = 5_000_000
_UNBILLED = ("rate_limited", "server_error", "refused", "context_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """``wait`` seconds come first; ``manner`` "cut" stops half-way through the body, "hang" never starts."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    manner: str = "whole"
    tokens: tuple[int, int] = (0, 0)


def scripted_reply(call: Call, entry: Entry, text: str, fault: Fault | None) -> Reply:
    """The entry's ``text``, or what ``fault`` makes of it."""
    kind = fault.kind if fault else ""
    if fault and kind in _UNBILLED:
        return _error_reply(call, fault)
    content = _DAMAGES.get(kind, str)(text)
    tokens = (call.input_tokens, min(len(content) // 4, call.max_tokens or HUGE_CHARACTERS))
    if entry.usage:
        tokens = (entry.usage.input_tokens, entry.usage.output_tokens)
    return Reply(
        status=200,
        body=_completion(call, content, tokens, finish="length" if kind == "cut_json" else "stop"),
        wait=fault.seconds if fault and kind == "slow" else 0.0,
        manner=kind if kind in ("cut", "hang") else "whole",
        tokens=tokens,
    )


def error_body(message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> bytes:
    """An error as OpenAI words it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def _error_reply(call: Call, fault: Fault) -> Reply:
    status, message, kind, code = {
        "rate_limited": (429, "Rate limit reached.", "requests", "rate_limit_exceeded"),
        "server_error": (500, "The server had an error while processing your request.", "server_error", None),
        "refused": (401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
        "context_length": (
            400,
            f"This model's maximum context length is 4096 tokens. However, your messages resulted in "
            f"{call.input_tokens} tokens. Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
        ),
    }[fault.kind]
    wait = 1.0 if fault.retry_after is None and fault.kind == "rate_limited" else fault.retry_after
    headers = {} if wait is None else {"Retry-After": f"{wait:g}"}
    return Reply(status=status, body=error_body(message, kind=kind, code=code), headers=headers)


def _completion(call: Call, content: str, tokens: tuple[int, int], *, finish: str) -> bytes:
    message = {"role": "assistant", "content": content}
    completion: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
    }
    return json.dumps(completion).encode()


def _prose(text: str) -> str:
    return f"Here is what you asked for:\n\n```json\n{text}\n```\n\nTell me if it isn't what you need."


_DAMAGES: Mapping[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "malformed_json": lambda text: text[:-1] + "]",
    "cut_json": lambda text: text[: len(text) // 2],
    "prose": _prose,
    "wrong_schema": lambda text: json.dumps({"answer": "as you like it"}),
    "huge": lambda text: '{"summary": "' + "x" * HUGE_CHARACTERS + '"}',
}
