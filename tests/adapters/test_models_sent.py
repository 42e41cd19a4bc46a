"""What litellm sends to a provider, and what is made of a true answer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from pytest_httpserver import HTTPServer

from adapters.compliance.language_model import (
    plan_request,
)
from adapters.models.endpoint import Endpoint
from adapters.schemas import open_schemas
from domain.money.usage import Price, Usage
from tests.adapters.model_calls import CANARY, ROOT, asked, completion, loaded_litellm, model_at

__all__ = ["loaded_litellm"]  # a fixture of this file too


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
