"""litellm when things go wrong: the shared suite on the scripted server, and what that one cannot do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_httpserver import HTTPServer
from werkzeug import Response

from adapters.compliance.language_model import (
    ANSWER,
    LanguageModelCompliance,
    OpenProvider,
    Provider,
    plan_request,
)
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.models.scripted.bill import read_bill
from adapters.models.scripted.server import ScriptedServer
from adapters.schemas import open_schemas
from domain.errors import CredentialsRefused, MendworkError, ProviderRefused, ProviderUnavailable, RateLimited
from tests.adapters.model_calls import CANARY, completion, loaded_litellm, model_at, refused

__all__ = ["loaded_litellm"]  # a fixture of this file too


@pytest.fixture
def open_provider(tmp_path: Path) -> OpenProvider:
    @contextmanager
    def opened(faults: Sequence[Mapping[str, Any]]) -> Iterator[Provider]:
        answers, bill = tmp_path / "answers.yaml", tmp_path / "bill.jsonl"
        entry = {"role": "Plan", "answer": dict(ANSWER), "faults": list(faults)}
        answers.write_text(yaml.safe_dump([entry, {**entry, "attempt": 2, "faults": []}]))
        with ScriptedServer(answers, bill, required_key=CANARY) as server:
            yield Provider(model=model_at(server.base_url), name="m", calls=lambda: len(read_bill(bill)))

    def open_it(faults: Sequence[Mapping[str, Any]]) -> AbstractContextManager[Provider]:
        return opened(faults)

    return open_it


class TestLitellm(LanguageModelCompliance):
    """The shared suite."""


@pytest.mark.parametrize(
    "reply",
    [
        completion(finish_reason="content_filter"),
        completion(message={"role": "assistant", "content": None, "refusal": "I can't help with that."}),
    ],
)
async def test_a_model_that_declines_is_not_asked_again(httpserver: HTTPServer, reply: Mapping[str, Any]) -> None:
    error = await refused(httpserver, Response(json.dumps(reply), mimetype="application/json"))
    assert type(error) is ProviderRefused


@pytest.mark.parametrize("reply", [{**completion(), "choices": []}, {"hello": "world"}, [1], "text"])
async def test_a_reply_of_no_known_shape_may_be_tried_again(httpserver: HTTPServer, reply: Any) -> None:
    error = await refused(httpserver, Response(json.dumps(reply), mimetype="application/json"))
    assert type(error) is ProviderUnavailable


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ProviderRefused),
        (401, CredentialsRefused),
        (403, CredentialsRefused),
        (404, ProviderRefused),
        (422, ProviderRefused),
        (408, ProviderUnavailable),
        (429, RateLimited),
        (500, ProviderUnavailable),
        (502, ProviderUnavailable),
        (503, ProviderUnavailable),
        (529, ProviderUnavailable),
    ],
)
async def test_every_status_is_classified_and_no_key_is_told(
    httpserver: HTTPServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, status: int, kind: type
) -> None:
    caplog.set_level(logging.DEBUG)
    message = f"\x1b[31mBad {CANARY} in\x1b[0m 'Bearer {CANARY}' and ?key={CANARY}\nsecond line\r\n" + "x" * 5000
    body = json.dumps({"error": {"message": message, "type": "odd", "code": None}})
    error = await refused(httpserver, Response(body, status=status, mimetype="application/json"))
    assert type(error) is kind
    told = f"{error} {error!r} {error.__cause__!r} {caplog.text} {capfd.readouterr()}"
    assert "canary" not in told
    assert "second line" not in told
    assert "Plan it." not in told
    assert [record.name for record in caplog.records if record.name != "werkzeug"] == []
    assert str(error).isprintable()
    assert len(str(error)) < 300
    assert (error.__cause__, error.__suppress_context__) == (None, True), "the cause holds prompt and key"


async def test_a_refused_key_names_the_variable_to_set(httpserver: HTTPServer) -> None:
    error = await refused(httpserver, Response("{}", status=401), key_name="MY_KEY")
    assert type(error) is CredentialsRefused
    assert str(error) == "model m: AuthenticationError: it refused the key; set MY_KEY"


async def test_an_account_without_credit_is_not_waited_for(httpserver: HTTPServer) -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error = await refused(httpserver, Response(json.dumps(body), status=429, mimetype="application/json"))
    assert type(error) is ProviderRefused
    assert "You exceeded your current quota" in str(error)


async def test_an_address_where_nobody_listens_may_be_tried_again(unused_tcp_port: int) -> None:
    with pytest.raises(ProviderUnavailable):
        await model_at(f"http://127.0.0.1:{unused_tcp_port}/v1").complete(plan_request("m"))


async def test_a_model_without_a_provider_is_refused_with_its_reason() -> None:
    nameless = Endpoint(name="m", model="nobody-knows-this-model")
    with pytest.raises(ProviderRefused, match=r"model m: BadRequestError.*provider"):
        await open_model({"m": nameless}, schemas=open_schemas()).complete(plan_request("m"))


async def test_a_key_with_a_line_break_is_not_told_either(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_json(completion())
    model = model_at(httpserver.url_for("/v1"), api_key=f"{CANARY}\ncanary-two")
    with pytest.raises(MendworkError) as caught:
        await model.complete(plan_request("m"))
    assert "canary" not in str(caught.value)


async def test_the_loop_goes_on_while_a_large_call_is_made(open_provider: OpenProvider) -> None:
    with open_provider([]) as provider:
        # Seconds of processor, however busy the machine is: of the loop's thread, and of all.
        here, everywhere = time.thread_time(), time.process_time()
        answer = await provider.model.complete(plan_request(provider.name, content="word " * 300_000))
        here, everywhere = time.thread_time() - here, time.process_time() - everywhere
    assert answer.usage.input_tokens > 300_000
    assert here < min(0.5, everywhere / 2)  # the library works on a loop of its own


async def test_an_answer_that_drips_for_ever_ends_at_the_timeout() -> None:
    closed = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        with contextlib.suppress(ConnectionError):  # that is how the client's end shows
            while not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.wait([asyncio.ensure_future(reader.read(65536))], timeout=0.05)
        closed.set()
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ProviderUnavailable, match=r"^model m: no answer within 0\.7 s$"):
            await model_at(f"http://127.0.0.1:{port}/v1").complete(plan_request("m", seconds=0.7))
        await asyncio.wait_for(closed.wait(), timeout=30)
