"""What litellm's tables say of a model's price, what of our wishes it takes, and what a failed call cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from adapters.compliance.language_model import plan_request
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.models.engine import engine
from adapters.models.prices import listed_quote, taken_pins
from adapters.schemas import open_schemas
from domain.errors import MendworkError, UnknownName
from domain.money.usage import FREE, NOTHING, Bill, Price, Quote, Usage
from domain.ports.language_model import CallKey, bill_of
from tests.adapters.model_calls import asked, completion, loaded_litellm, model_at, refused

__all__ = ["loaded_litellm"]  # a fixture of this file too

KEY = CallKey(saga="build-notes-1", step="plan", attempt=1)
DOLLAR = Price(input_micros_per_million=1_000_000, output_micros_per_million=1_000_000)
WANTED = {"temperature": 0, "seed": 5}


class Table:
    """litellm as far as prices are asked for."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.model_cost = {"m": row}

    def get_model_info(self, model: str) -> Mapping[str, Any]:
        return {"key": model}


class TestPrices:
    async def test_the_table_of_litellm_is_quoted_with_its_version(self) -> None:
        quote = listed_quote((await engine()).litellm, "openai/gpt-4o")
        assert quote is not None
        assert quote.price == Price(input_micros_per_million=2_500_000, output_micros_per_million=10_000_000)
        assert quote.source.startswith("litellm 1.")

    @pytest.mark.parametrize("model", ["openai/scripted", "nobody-knows-this", "azure/container"])
    async def test_what_the_table_lacks_has_no_price_and_not_the_price_zero(self, model: str) -> None:
        assert listed_quote((await engine()).litellm, model) is None

    async def test_what_runs_on_this_machine_is_free(self) -> None:
        quote = listed_quote((await engine()).litellm, "ollama_chat/any")
        assert quote is not None
        assert quote.price == NOTHING

    def test_the_dearest_rate_counts_where_long_prompts_cost_more(self) -> None:
        row = {
            "input_cost_per_token": 1e-6,
            "input_cost_per_token_above_200k_tokens": 2.5e-6,
            "input_cost_per_token_above_200k_tokens_priority": 9e-6,
            "input_cost_per_token_batches": 9e-6,
            "output_cost_per_token": 3e-6,
            "output_cost_per_reasoning_token": 4e-6,
            "output_cost_per_token_above_128k_tokens": None,
        }
        quote = listed_quote(Table(row), "m")
        assert quote is not None
        assert quote.price == Price(input_micros_per_million=2_500_000, output_micros_per_million=4_000_000)

    @pytest.mark.parametrize("missing", ["input_cost_per_token", "output_cost_per_token"])
    def test_half_a_price_is_none(self, missing: str) -> None:
        row = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
        del row[missing]
        assert listed_quote(Table(row), "m") is None

    async def test_a_configured_price_wins_and_is_its_own_source(self) -> None:
        endpoints = {"m": Endpoint(name="m", model="openai/gpt-4o", price=DOLLAR)}
        model = open_model(endpoints, schemas=open_schemas())
        assert await model.quote("m") == Quote(price=DOLLAR, source="mendwork.toml")
        with pytest.raises(UnknownName, match="known: m"):
            await model.quote("nobody")

    async def test_a_free_model_that_counts_nothing_costs_nothing(self, httpserver: HTTPServer) -> None:
        answer, _ = await asked(httpserver, completion(usage=None), price=NOTHING)
        assert answer.usage == Usage(input_tokens=0, output_tokens=0, cost_micros=0)


class TestPins:
    async def test_temperature_and_seed_are_sent_and_told(self, httpserver: HTTPServer) -> None:
        answer, request = await asked(httpserver, completion())
        sent = request.get_json()
        assert (sent["temperature"], sent["seed"]) == (0, KEY.seed)
        assert answer.pinned == {"temperature": 0, "seed": KEY.seed}

    async def test_a_server_that_is_said_to_take_no_pins_gets_none(self, httpserver: HTTPServer) -> None:
        answer, request = await asked(httpserver, completion(), pin=False)
        assert not {"temperature", "seed"} & set(request.get_json())
        assert answer.pinned == {}

    async def test_what_a_model_does_not_take_is_not_sent(self, httpserver: HTTPServer) -> None:
        answer, request = await asked(httpserver, completion(), model="openai/o1")
        assert "temperature" not in request.get_json()
        assert answer.pinned == {"seed": KEY.seed}

    @pytest.mark.parametrize(
        ("model", "taken"),
        [
            ("openai/anything", {"temperature", "seed"}),
            ("openai/gpt-5", {"seed"}),
            ("anthropic/claude-opus-4-5", {"temperature"}),
            ("ollama_chat/llama3", {"temperature", "seed"}),
        ],
    )
    async def test_litellm_knows_what_each_takes(self, model: str, taken: set[str]) -> None:
        assert set(taken_pins((await engine()).litellm, model, base_url="", wanted=WANTED)) == taken

    def test_the_seed_is_the_calls_own_whoever_makes_it(self) -> None:
        keys = [CallKey(saga="s", step="plan", attempt=a, turn=t) for a in range(1, 20) for t in range(1, 20)]
        assert len({key.seed for key in keys}) == len(keys)
        assert all(0 <= key.seed < 2**31 for key in keys)
        assert KEY.seed == CallKey(saga="build-notes-1", step="plan", attempt=1).seed == 1_012_108_803


class TestBills:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 529])
    async def test_an_error_status_is_no_bill(self, httpserver: HTTPServer, status: int) -> None:
        assert bill_of(await refused(httpserver, Response("{}", status=status))) == FREE

    @pytest.mark.parametrize("status", [408, 504, 524])
    async def test_behind_a_timeout_on_the_way_the_model_may_go_on(self, httpserver: HTTPServer, status: int) -> None:
        assert bill_of(await refused(httpserver, Response("{}", status=status))) is None

    @pytest.mark.parametrize("body", ['{"hello": "world"}', "[1]", "text", ""])
    async def test_an_answer_that_nobody_can_read_may_be_billed(self, httpserver: HTTPServer, body: str) -> None:
        assert bill_of(await refused(httpserver, Response(body, mimetype="application/json"))) is None

    @pytest.mark.parametrize(
        "reply",
        [
            completion(""),
            completion(finish_reason="content_filter"),
            completion(message={"role": "assistant", "content": None, "refusal": "No."}),
        ],
        ids=["empty", "filtered", "declined"],
    )
    async def test_an_answer_of_no_use_has_its_bill(self, httpserver: HTTPServer, reply: Mapping[str, Any]) -> None:
        error = await refused(httpserver, Response(json.dumps(reply), mimetype="application/json"), price=DOLLAR)
        assert bill_of(error) == Bill(usage=Usage(input_tokens=3, output_tokens=5, cost_micros=8))

    async def test_what_was_never_sent_is_free(self, unused_tcp_port: int) -> None:
        for model in (
            model_at(f"http://127.0.0.1:{unused_tcp_port}/v1"),
            open_model({"m": Endpoint(name="m", model="nobody-knows-this")}, schemas=open_schemas()),
            open_model({"m": Endpoint(name="m", model="openai/x")}, schemas=open_schemas()),
        ):
            with pytest.raises(MendworkError) as caught:
                await model.complete(plan_request("m"))
            assert bill_of(caught.value) == FREE, caught.value
        with pytest.raises(UnknownName) as unknown:
            await model.complete(plan_request("nobody"))
        assert bill_of(unknown.value) == FREE

    @pytest.mark.parametrize("manner", ["reset", "cut", "silent"])
    async def test_what_was_sent_and_not_answered_may_be_billed(self, manner: str) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            if manner == "cut":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            if manner == "silent":
                await reader.read()
            with contextlib.suppress(ConnectionError):  # the client was first
                writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            model = model_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            with pytest.raises(MendworkError) as caught:
                await model.complete(plan_request("m", seconds=0.5))
        assert bill_of(caught.value) is None
