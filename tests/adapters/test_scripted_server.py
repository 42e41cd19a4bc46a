"""The scripted server over its socket, with a client that knows nothing of litellm."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.models.scripted.bill import Bill, BillLine, read_bill
from adapters.models.scripted.server import ScriptedServer
from domain.errors import InvalidInput

ANSWER = {"summary": "done", "operations": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return str(json.loads(self.body)["choices"][0]["message"]["content"])

    @property
    def error(self) -> dict[str, Any]:
        return dict(json.loads(self.body)["error"])


def post(url: str, *, role: str = "Change", key: str = "b/change/1/1", content: str = "hi", **headers: str) -> Got:
    body = {"model": "m", "messages": [{"role": "user", "content": content}],
            "response_format": {"type": "json_schema", "json_schema": {"name": role}}}  # fmt: skip
    return raw(url, "POST", "/chat/completions", json.dumps(body).encode(), {"X-Mendwork-Key": key, **headers})


def raw(url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Got:
    host, _, prefix = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.request(method, f"/{prefix}{path}", body, headers or {})
        response = connection.getresponse()
        return Got(status=response.status, headers=dict(response.headers), body=response.read())
    finally:
        connection.close()


def files(folder: Path, *entries: dict[str, Any]) -> tuple[Path, Path]:
    (folder / "answers.yaml").write_text(yaml.safe_dump(list(entries), sort_keys=False))
    return folder / "answers.yaml", folder / "bill.jsonl"


def faulty(*kinds: Any) -> dict[str, Any]:
    faults = [kind if isinstance(kind, dict) else {"kind": kind} for kind in kinds]
    return {"role": "Change", "answer": ANSWER, "faults": faults}


@pytest.fixture
def bill(tmp_path: Path) -> Path:
    return tmp_path / "bill.jsonl"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server that knows two entries."""
    entries = [faulty(), {**faulty({"kind": "slow", "seconds": 0}), "task": "slow"}]
    with ScriptedServer(*files(tmp_path, *entries)) as server:
        yield server.base_url


def test_an_answer_has_the_shape_of_openais(url: str) -> None:
    got = post(url, content="x" * 80)
    completion = json.loads(got.body)
    assert got.status == 200
    assert json.loads(got.text) == ANSWER
    assert completion["object"] == "chat.completion"
    assert completion["model"] == "m"
    assert completion["choices"][0]["finish_reason"] == "stop"
    tokens = len(got.text) // 4
    assert completion["usage"] == {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}


def test_it_listens_on_loopback_alone(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/v1")


def test_it_lists_a_model(url: str) -> None:
    got = raw(url, "GET", "/models")
    assert json.loads(got.body)["data"][0]["id"] == "scripted"


def test_a_request_of_a_megabyte_and_more_is_answered(url: str, bill: Path) -> None:
    assert post(url, content="word " * 300_000).status == 200
    assert read_bill(bill)[0].input_tokens == 375_000


def test_the_bill_says_who_asked_for_what(url: str, bill: Path) -> None:
    post(url, key="build-a-1-task-api/change/1/2", content="x" * 400)
    (line,) = read_bill(bill)
    assert (line.key, line.role, line.task, line.model) == ("build-a-1-task-api/change/1/2", "Change", "api", "m")
    assert (line.fault, line.input_tokens, line.output_tokens) == ("", 100, len(json.dumps(ANSWER)) // 4)
    assert line.at.endswith("+00:00")


def test_usage_may_be_scripted(tmp_path: Path, bill: Path) -> None:
    entry = {**faulty(), "usage": {"input_tokens": 7, "output_tokens": 9}}
    with ScriptedServer(*files(tmp_path, entry)) as server:
        usage = json.loads(post(server.base_url).body)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (7, 9)
    assert [(line.input_tokens, line.output_tokens) for line in read_bill(bill)] == [(7, 9)]


@pytest.mark.parametrize(("limit", "billed"), [(3, 3), (10_000, 9), (None, 9), ("x", 9)])
def test_no_more_output_is_billed_than_was_allowed(url: str, bill: Path, limit: Any, billed: int) -> None:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": limit}
    got = raw(url, "POST", "/chat/completions", json.dumps(body).encode(), {"X-Mendwork-Key": "b/change/1/1"})
    assert json.loads(got.body)["usage"]["completion_tokens"] == read_bill(bill)[0].output_tokens == billed
    assert json.loads(got.text) == ANSWER, "the text is as scripted, whatever a token is"


def test_what_is_not_scripted_is_a_404_that_lists_what_is(url: str, bill: Path) -> None:
    got = post(url, role="Poem", key="b-task-api/poem/3/2")
    assert got.status == 404
    assert got.error["message"] == "no scripted answer for Poem/api/3, turn 2; known: Change/*/1, Change/slow/1"
    assert read_bill(bill) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 404),
        ("POST", "/completions", b"{}", 404),
        ("POST", "/chat/completions", b"{}", 400),
        ("POST", "/chat/completions", b"nonsense", 400),
        ("PUT", "/chat/completions", b"{}", 501),
    ],
)
def test_other_requests_are_refused(url: str, method: str, path: str, body: bytes | None, status: int) -> None:
    assert raw(url, method, path, body).status == status


def test_a_request_without_length_or_with_too_much_is_refused(url: str) -> None:
    for length in ("99999999999", "-1", "x"):
        assert raw(url, "POST", "/chat/completions", b"", {"Content-Length": length}).status == 413


def test_faults_come_in_order_once_per_key_then_the_answer(tmp_path: Path, bill: Path) -> None:
    with ScriptedServer(
        *files(tmp_path, faulty("rate_limited", "server_error", "context_length", "refused"))
    ) as server:
        statuses = [post(server.base_url).status for _ in range(6)]
        again = [post(server.base_url, key="other/change/1/1").status for _ in range(5)]
        next_turn = post(server.base_url, key="b/change/1/2").status
    assert statuses == [429, 500, 400, 401, 200, 200]
    assert again == [429, 500, 400, 401, 200]
    assert next_turn == 200
    assert [line.fault for line in read_bill(bill)][:6] == [
        "rate_limited", "server_error", "context_length", "refused", "", ""
    ]  # fmt: skip
    assert {line.output_tokens for line in read_bill(bill) if line.fault} == {0}, "what failed is not billed"


def test_each_http_fault_is_worded_as_openai_does(tmp_path: Path) -> None:
    kinds = [{"kind": "rate_limited", "retry_after": 2.5}, "rate_limited", "context_length", "server_error", "refused"]
    with ScriptedServer(*files(tmp_path, faulty(*kinds))) as server:
        limited, default, context, broken, refused = (post(server.base_url) for _ in kinds)
    assert limited.headers["Retry-After"] == "2.5"
    assert default.headers["Retry-After"] == "1"
    assert context.error["code"] == "context_length_exceeded"
    assert "maximum context length" in context.error["message"]
    assert broken.error["type"] == "server_error"
    assert "Retry-After" not in broken.headers
    assert refused.error["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("kind", "finish", "text"),
    [
        ("empty", "stop", ""),
        ("malformed_json", "stop", '{"summary": "done", "operations": []]'),
        ("cut_json", "length", '{"summary": "done"'),
        ("wrong_schema", "stop", '{"answer": "as you like it"}'),
    ],
)
def test_each_damaged_answer_is_damaged_in_its_way(tmp_path: Path, kind: str, finish: str, text: str) -> None:
    with ScriptedServer(*files(tmp_path, faulty(kind))) as server:
        damaged, whole = post(server.base_url), post(server.base_url)
    assert (damaged.text, json.loads(damaged.body)["choices"][0]["finish_reason"]) == (text, finish)
    assert json.loads(whole.text) == ANSWER


def test_prose_holds_the_whole_answer(tmp_path: Path) -> None:
    with ScriptedServer(*files(tmp_path, faulty("prose"))) as server:
        text = post(server.base_url).text
    assert text.startswith("Here is")
    assert f"```json\n{json.dumps(ANSWER)}\n```" in text


def test_a_huge_answer_has_five_megabytes(tmp_path: Path) -> None:
    with ScriptedServer(*files(tmp_path, faulty("huge"))) as server:
        assert len(post(server.base_url).text) > 5_000_000


def test_a_cut_connection_ends_in_the_middle_of_the_body(tmp_path: Path, bill: Path) -> None:
    with ScriptedServer(*files(tmp_path, faulty("cut"))) as server:
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(server.base_url)
        assert post(server.base_url).status == 200
    assert len(caught.value.partial) > 0
    assert [line.fault for line in read_bill(bill)] == ["cut", ""]


def test_a_hanging_call_is_billed_and_ends_with_the_server(tmp_path: Path, bill: Path) -> None:
    with ThreadPoolExecutor() as pool:
        with ScriptedServer(*files(tmp_path, faulty("hang"))) as server:
            hanging = pool.submit(post, server.base_url)
            while not read_bill(bill):
                threading.Event().wait(0.01)
            assert post(server.base_url).status == 200, "others are served meanwhile"
            assert not hanging.done()
        assert isinstance(hanging.exception(timeout=30), http.client.RemoteDisconnected)
    assert [line.fault for line in read_bill(bill)] == ["hang", ""]


def test_many_callers_at_once_play_each_fault_once(tmp_path: Path, bill: Path) -> None:
    with (
        ScriptedServer(*files(tmp_path, faulty("server_error", "rate_limited"))) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        keys = [f"b-{number % 4}/change/1/1" for number in range(24)]
        statuses = sorted(got.status for got in pool.map(lambda key: post(server.base_url, key=key), keys))
    assert statuses == [200] * 16 + [429] * 4 + [500] * 4
    assert len(read_bill(bill)) == 24


def test_a_restarted_server_remembers_what_it_played(tmp_path: Path, bill: Path) -> None:
    paths = files(tmp_path, faulty("server_error", "rate_limited"))
    statuses = []
    for _ in range(3):
        with ScriptedServer(*paths) as server:
            statuses.append(post(server.base_url).status)
    assert statuses == [500, 429, 200]
    assert len(read_bill(bill)) == 3


def test_a_required_key_is_required(tmp_path: Path, bill: Path) -> None:
    with ScriptedServer(*files(tmp_path, faulty()), required_key="canary") as server:
        assert post(server.base_url).status == 401
        assert post(server.base_url, Authorization="Bearer wrong").status == 401
        assert read_bill(bill) == []
        assert post(server.base_url, Authorization="Bearer canary").status == 200


LINE = BillLine(key="k", role="r", task="", model="m", fault="cut", input_tokens=1, output_tokens=2, at="now")


@pytest.mark.parametrize("half", [b"", b"{", b'{"key": "k", "role"', b'{"key": "\xc3'])
def test_half_a_last_line_is_dropped(bill: Path, half: bytes) -> None:
    first = Bill(bill)
    first.append(LINE)
    first.close()
    bill.write_bytes(bill.read_bytes() + half)
    second = Bill(bill)
    assert second.faults_played("k") == 1
    second.append(LINE)
    second.close()
    assert read_bill(bill) == [LINE, LINE]


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b'{"key": "k"}', b"[]"])
def test_a_file_that_is_no_bill_is_refused_with_its_line(bill: Path, line: bytes) -> None:
    bill.write_bytes(line + b"\n")
    with pytest.raises(InvalidInput, match="line 1 is no line of a bill"):
        Bill(bill)
    assert bill.read_bytes() == line + b"\n"


def test_a_bill_that_does_not_exist_is_empty(bill: Path) -> None:
    assert read_bill(bill) == []
