"""A request as the script sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

_TASK = "-task-"


class BadCall(ValueError):
    """A request that no client of ours sends; ``str(error)`` says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``key`` is the whole logical attempt, ``tasks`` what its saga may name as task, ``input_tokens`` the prompt's.

    ``max_tokens`` is the most output that may be billed, None where the request names no limit.
    """

    key: str
    role: str
    tasks: tuple[str, ...]
    attempt: int
    turn: int
    model: str
    input_tokens: int
    max_tokens: int | None = None


def read_call(body: bytes, key: str) -> Call:
    """Read a chat completion request and its ``X-Mendwork-Key``. Raises BadCall."""
    try:
        request = json.loads(body)
        contents = [str(message["content"]) for message in request["messages"]]
        model, most = str(request["model"]), request.get("max_completion_tokens", request.get("max_tokens"))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise BadCall("the request is no chat completion") from error
    if request.get("stream"):
        raise BadCall("this server does not stream")
    saga, step, attempt, turn = _split(unquote(key))
    return Call(
        key=unquote(key),
        role=_schema_name(request) or step.capitalize(),
        tasks=tuple(_suffixes(saga)),
        attempt=attempt,
        turn=turn,
        model=model,
        input_tokens=sum(map(len, contents)) // 4,
        max_tokens=most if isinstance(most, int) else None,
    )


def _split(key: str) -> tuple[str, str, int, int]:
    saga, step, attempt, turn = [*key.split("/"), *[""] * 4][:4]
    if key.count("/") != 3 or not saga or not attempt.isdecimal() or not turn.isdecimal():
        raise BadCall("the header X-Mendwork-Key is not <saga>/<step>/<attempt>/<turn>")
    return saga, step, int(attempt), int(turn)


def _schema_name(request: Mapping[str, Any]) -> str:
    described = request.get("response_format") or {}
    return str((described.get("json_schema") or {}).get("name", "")) if isinstance(described, dict) else ""


def _suffixes(saga: str) -> list[str]:
    """What stands after each ``-task-``: a build's name or a task's may hold that word too."""
    parts = saga.split(_TASK)
    return [_TASK.join(parts[number:]) for number in range(1, len(parts))]
