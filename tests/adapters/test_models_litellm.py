"""litellm against real sockets: the scripted server for faults, pytest-httpserver for what is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from adapters.compliance.language_model import (
    ANSWER,
    LanguageModelCompliance,
    OpenProvider,
    Provider,
    plan_request,
)
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.models.engine import engine
from adapters.models.scripted.bill import read_bill
from adapters.models.scripted.server import ScriptedServer
from adapters.schemas import open_schemas
from domain.errors import MendworkError, ProviderRefused, ProviderUnavailable, RateLimited
from domain.money.usage import Price, Usage
from domain.ports.language_model import LanguageModel, ModelAnswer

CANARY = "sk-canary-1234567890-do-not-print"
ROOT = Path(__file__).parents[2]


def model_at(url: str, **settings: Any) -> LanguageModel:
    endpoint = Endpoint(name="m", model="openai/scripted", base_url=url, api_key=CANARY)
    return open_model({"m": replace(endpoint, **settings)}, schemas=open_schemas())


@pytest.fixture(scope="session", autouse=True)
def loaded_litellm() -> None:
    """Its import takes seconds: once, and outside of every test's own time."""
    asyncio.run(engine())


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


async def test_the_logical_attempt_and_the_key_are_in_the_headers(httpserver: HTTPServer) -> None:
    _, request = await asked(httpserver, completion())
    assert request.headers["X-Mendwork-Key"] == "build-notes-1/plan/1/1"
    assert request.headers["Idempotency-Key"] == "build-notes-1/plan/1/1"
    assert request.headers["Authorization"] == f"Bearer {CANARY}"


async def test_a_key_with_strange_characters_is_one_plain_header(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_json(completion())
    request = plan_request("m")
    strange = replace(request, key=replace(request.key, saga="bücher\r\nX-Evil: 1"))
    await model_at(httpserver.url_for("/v1")).complete(strange)
    headers = httpserver.log[0][0].headers
    assert headers["X-Mendwork-Key"] == "b%C3%BCcher%0D%0AX-Evil%3A%201/plan/1/1"
    assert "X-Evil" not in headers


async def test_the_schema_reaches_the_server_unchanged(httpserver: HTTPServer) -> None:
    _, request = await asked(httpserver, completion())
    sent = request.get_json()
    schema = dict(open_schemas().schema("Plan"))
    described = {"name": "Plan", "strict": True, "schema": schema}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": described}
    assert sent["model"] == "scripted"
    assert sent["max_tokens"] == 1000
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert not sent.get("stream")


async def test_without_structured_output_the_schema_is_in_the_prompt(httpserver: HTTPServer) -> None:
    _, request = await asked(httpserver, completion(), structured=False)
    sent = request.get_json()
    assert "response_format" not in sent
    assert json.dumps(open_schemas().schema("Plan"), ensure_ascii=False) in sent["messages"][0]["content"]
    assert [message["content"] for message in sent["messages"][1:]] == ["You plan.", "Plan it."]


async def test_another_providers_key_is_never_sent_to_a_configured_address(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_json(completion())
    program = (
        "import asyncio, os\n"
        "from adapters.compliance.language_model import plan_request\n"
        "from adapters.models import Endpoint, open_model\n"
        "from adapters.schemas import open_schemas\n"
        "endpoint = Endpoint(name='m', model='openai/x', base_url=os.environ['URL'])\n"
        "asyncio.run(open_model({'m': endpoint}, schemas=open_schemas()).complete(plan_request('m')))\n"
        "print(os.environ.get('FROM_DOT_ENV'))\n"
    )
    # A .env beside it is nobody's wish, and the debug switches of litellm's users stay without effect.
    (tmp_path / ".env").write_text("FROM_DOT_ENV=yes\n")
    environment = {"OPENAI_API_KEY": CANARY, "URL": httpserver.url_for("/v1"), "PYTHONPATH": str(ROOT),
                   "LITELLM_LOG": "DEBUG"}  # fmt: skip
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
    assert httpserver.log[0][0].headers["Authorization"] == "Bearer none"


async def test_a_configured_price_counts(httpserver: HTTPServer) -> None:
    price = Price(input_micros_per_million=1_000_000, output_micros_per_million=500_001)
    answer, _ = await asked(httpserver, completion(), price=price)
    assert answer.usage == Usage(input_tokens=3, output_tokens=5, cost_micros=3 + 3)


async def test_without_a_price_litellms_table_counts_rounded_up(httpserver: HTTPServer) -> None:
    answer, _ = await asked(httpserver, completion(), model="openai/gpt-4o")
    assert answer.usage == Usage(input_tokens=3, output_tokens=5, cost_micros=58)  # 3 * 2.5 + 5 * 10 = 57.5


async def test_a_model_without_any_price_has_an_unknown_cost(httpserver: HTTPServer) -> None:
    answer, _ = await asked(httpserver, completion())
    assert answer.usage == Usage(input_tokens=3, output_tokens=5, cost_micros=None)


async def test_an_answer_that_is_billed_as_nothing_has_an_unknown_cost(httpserver: HTTPServer) -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    answer, _ = await asked(httpserver, completion(usage=nothing), price=Price(
        input_micros_per_million=1, output_micros_per_million=1))  # fmt: skip
    assert answer.usage.cost_micros is None


async def test_a_model_that_thought_until_its_limit_is_paid_and_cut(httpserver: HTTPServer) -> None:
    answer, _ = await asked(httpserver, completion("", finish_reason="length"))
    assert (answer.text, answer.cut, answer.usage.output_tokens) == ("", True, 5)


async def test_half_a_surrogate_pair_becomes_text_that_can_be_stored(httpserver: HTTPServer) -> None:
    answer, _ = await asked(httpserver, completion('{"summary": "\ud800"}'))
    assert answer.text.encode().decode() == answer.text


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
        (401, ProviderRefused),
        (403, ProviderRefused),
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
    gaps = [0.0]

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - before)

    beating = asyncio.create_task(beat())
    with open_provider([]) as provider:
        answer = await provider.model.complete(plan_request(provider.name, content="word " * 300_000))
    beating.cancel()
    assert answer.usage.input_tokens > 300_000
    assert max(gaps) < 0.5


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
        await asyncio.wait_for(closed.wait(), timeout=5)


def test_an_endpoint_hides_its_key() -> None:
    assert CANARY not in repr(Endpoint(name="m", model="openai/x", api_key=CANARY))
    assert Endpoint(name="m", model="together-ai/x").key_variable == "TOGETHER_AI_API_KEY"


def test_nothing_heavy_is_loaded_before_the_first_call() -> None:
    program = (
        "import sys\n"
        "import adapters.models.litellm_model\n"
        "from adapters.models import Endpoint, open_model\n"
        "open_model({'m': Endpoint(name='m', model='openai/x')}, schemas=None)\n"
        "print([name for name in ('litellm', 'openai', 'httpx', 'pydantic') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_litellm_the_extra_is_named() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['litellm'] = None\n"
        "from adapters.models.engine import engine\n"
        "asyncio.run(engine())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "ProviderRefused: litellm is not installed: models need the extra 'llm'" in done.stderr
