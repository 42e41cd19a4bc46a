"""Calls of litellm against a server of the test's own, for the tests of the model adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from adapters.compliance.language_model import (
    plan_request,
)
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.models.engine import engine
from adapters.schemas import open_schemas
from domain.errors import MendworkError
from domain.ports.language_model import LanguageModel, ModelAnswer

CANARY = "sk-canary-1234567890-do-not-print"
ROOT = Path(__file__).parents[2]


def model_at(url: str, **settings: Any) -> LanguageModel:
    endpoint = Endpoint(name="m", model="openai/scripted", base_url=url, api_key=CANARY)
    return open_model({"m": replace(endpoint, **settings)}, schemas=open_schemas())


@pytest.fixture(scope="session", autouse=True)
def loaded_litellm() -> None:
    """Its import takes seconds: once, and outside of every test's own time. What it builds at its first call warns,
    and the filters that it sets itself hold for this test alone: so that call is made here, to nobody."""
    asyncio.run(_first_call())


async def _first_call() -> None:
    await engine()
    with pytest.raises(MendworkError):
        await model_at("http://127.0.0.1:1/v1").complete(plan_request("m"))


def completion(text: str | None = '{"summary":"","tasks":[]}', **changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    choice.update({name: changes.pop(name) for name in ("finish_reason", "message") if name in changes})
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice], "usage": usage,
            **changes}  # fmt: skip


async def asked(httpserver: HTTPServer, reply: Mapping[str, Any], **settings: Any) -> tuple[ModelAnswer, Request]:
    httpserver.expect_request("/v1/chat/completions").respond_with_json(reply)
    answer = await model_at(httpserver.url_for("/v1"), **settings).complete(plan_request("m"))
    assert len(httpserver.log) == 1
    return answer, httpserver.log[0][0]


async def refused(httpserver: HTTPServer, response: Response, **settings: Any) -> MendworkError:
    httpserver.expect_request("/v1/chat/completions").respond_with_response(response)
    with pytest.raises(MendworkError) as caught:
        await model_at(httpserver.url_for("/v1"), **settings).complete(plan_request("m"))
    assert len(httpserver.log) == 1
    return caught.value
