"""The second call of a model: what litellm said of the model for the first one is remembered, its seed is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from adapters.compliance.language_model import plan_request
from adapters.models.engine import engine
from adapters.models.prices import taken_pins
from tests.adapters.model_calls import completion, loaded_litellm, model_at

__all__ = ["loaded_litellm"]  # a fixture of this file too


async def test_litellm_is_asked_once_what_a_model_takes_and_each_call_has_its_own_seed(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(litellm: Any, model: str, **more: Any) -> dict[str, Any]:
        asked.append(model)
        return taken_pins(litellm, model, **more)

    monkeypatch.setattr("adapters.models.litellm_model.taken_pins", counted)
    httpserver.expect_request("/v1/chat/completions").respond_with_json(completion())
    model = model_at(httpserver.url_for("/v1"))
    requests = [plan_request("m"), plan_request("m", attempt=2)]
    requests.append(replace(requests[0], key=replace(requests[0].key, saga="build-notes-2")))
    for request in requests:
        await model.complete(request)
    sent = [request.get_json() for request, _ in httpserver.log]
    assert [each["seed"] for each in sent] == [request.key.seed for request in requests]
    assert {each["temperature"] for each in sent} == {0}
    assert asked == ["openai/scripted"]


async def test_an_engine_that_is_there_is_given_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*given: Any) -> Any:
        raise AssertionError("a thread was asked for it")

    there = await engine()
    monkeypatch.setattr(asyncio, "to_thread", no_thread)
    assert await engine() is there
