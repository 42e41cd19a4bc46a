"""The answers file and how a call finds its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapters.models.scripted.call import BadCall, Call, read_call
from adapters.models.scripted.script import Script, load_script
from domain.errors import InvalidInput
from domain.ports.language_model import CallKey


def script(folder: Path, text: str) -> Script:
    (folder / "answers.yaml").write_text(text)
    return load_script(folder / "answers.yaml")


def call(role: str = "Change", task: str = "", attempt: int = 1, turn: int = 1) -> Call:
    tasks = (task,) if task else ()
    return Call(key="k", role=role, tasks=tasks, attempt=attempt, turn=turn, model="m", input_tokens=1)


def answer(found: Script, wanted: Call) -> str | None:
    pair = found.find(wanted)
    return pair[1] if pair else None


def request(role: str | None = "Plan", **changes: Any) -> bytes:
    described = {"type": "json_schema", "json_schema": {"name": role, "schema": {}}}
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 40}],
                       "response_format": described if role else None, **changes}).encode()  # fmt: skip


SPECIFIC = """
- {role: Plan, text: plan}
- {role: Change, text: any task}
- {role: Change, turn: 2, text: any task again}
- {role: Change, task: api, text: api}
- {role: Change, task: api, turn: 2, text: api again}
- {role: Change, task: api, attempt: 2, text: second}
"""


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (call("Plan"), "plan"),
        (call("Plan", turn=9), "plan"),
        (call("Plan", attempt=2), None),
        (call("Poem"), None),
        (call(task="store"), "any task"),
        (call(task="store", turn=2), "any task again"),
        (call(task="api"), "api"),
        (call(task="api", turn=2), "api again"),
        (call(task="api", turn=3), "api"),
        (call(task="api", attempt=2, turn=2), "second"),
        (call(task="store", attempt=2), None),
    ],
)
def test_the_most_specific_entry_answers(tmp_path: Path, wanted: Call, text: str | None) -> None:
    assert answer(script(tmp_path, SPECIFIC), wanted) == text


def test_a_task_counts_more_than_a_turn(tmp_path: Path) -> None:
    found = script(tmp_path, "- {role: Change, turn: 2, text: turn}\n- {role: Change, task: api, text: task}\n")
    assert answer(found, call(task="api", turn=2)) == "task"


def test_an_answer_is_json_text_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("from a file é")
    (tmp_path / "answers.yaml").write_text("- {role: A, answer: {b: [1, é]}}\n- {role: B, file: big.txt}\n", "utf-8")
    found = load_script(tmp_path / "answers.yaml")
    assert answer(found, call("A")) == '{"b": [1, "é"]}'
    assert answer(found, call("B")) == "from a file é"


def test_faults_are_in_the_first_turn_unless_they_say_so(tmp_path: Path) -> None:
    text = """
    - {role: A, text: a, faults: [{kind: cut}, {kind: hang, turn: 2}, {kind: empty}]}
    - {role: A, turn: 3, text: a, faults: [{kind: slow}]}
    """
    found = script(tmp_path, text)

    def kinds(turn: int) -> list[str]:
        pair = found.find(call("A", turn=turn))
        return [fault.kind for fault in pair[0].faults_of(turn)] if pair else []

    assert [kinds(turn) for turn in (1, 2, 3, 4)] == [["cut", "empty"], ["hang"], ["slow"], []]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "while parsing"),
        ("hello", "Input should be a valid list"),
        ("", "Input should be a valid list"),
        ("- {role: A}", "entry 1: Value error, give exactly one of answer, text and file"),
        ("- {role: A, text: a, file: b}", "exactly one"),
        ("- {role: A, text: a}\n- {role: ''}", "entry 2: role:"),
        ("- {text: a}", "entry 1: role: Field required"),
        ("- {role: A, text: a, tsk: b}", "entry 1: tsk: Extra inputs"),
        ("- {role: A, text: a, attempt: 0}", "entry 1: attempt:"),
        ("- {role: A, text: a, faults: [{kind: slow}, {kind: late}]}", "entry 1: faults: 1: kind: Input should be"),
        ("- {role: A, text: a, faults: [{kind: slow, seconds: -1}]}", "entry 1: faults: 0: seconds:"),
        ("- {role: A, text: a}\n- {role: A, text: b}", "entry 2: A/*/1 is answered twice"),
        ("- {role: A, file: none.txt}", "entry 1: "),
        ("- {role: A, answer: {day: 2026-11-20}}", "entry 1: Object of type date"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        script(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'answers.yaml'}: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("nothing.yaml", "binary"):
        with pytest.raises(InvalidInput, match=name):
            load_script(tmp_path / name)


saga = st.text(st.sampled_from("ab1-"), min_size=1, max_size=20)


@given(saga, st.sampled_from(["plan", "change"]), st.integers(1, 99), st.integers(1, 99))
def test_every_call_key_of_ours_is_read_back(name: str, step: str, attempt: int, turn: int) -> None:
    key = CallKey(saga=name, step=step, attempt=attempt, turn=turn)
    found = read_call(request(), str(key))
    assert (found.key, found.attempt, found.turn) == (str(key), attempt, turn)


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("build-notes-1", ()),
        ("build-notes-1-task-api", ("api",)),
        ("build-notes-1-task-add-task-list", ("add-task-list", "list")),
        ("build-task-x-1-task-api", ("x-1-task-api", "api")),
    ],
)
def test_the_task_is_what_comes_after_the_word(name: str, tasks: tuple[str, ...]) -> None:
    assert read_call(request(), f"{name}/change/1/1").tasks == tasks


def test_the_role_is_the_schemas_name_else_the_step() -> None:
    assert read_call(request("Change"), "b/plan/1/1").role == "Change"
    assert read_call(request(None), "b/plan/1/1").role == "Plan"


def test_tokens_are_a_quarter_of_the_characters() -> None:
    assert read_call(request(), "b/plan/1/1").input_tokens == 10


@pytest.mark.parametrize("key", ["", "a", "a/b/1", "a/b/1/1/1", "/b/1/1", "a/b/x/1", "a/b/1/", "a/b/-1/1"])
def test_a_key_of_another_shape_is_refused(key: str) -> None:
    with pytest.raises(BadCall, match="X-Mendwork-Key"):
        read_call(request(), key)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"messages": [1], "model": "m"}', b"\xff"])
def test_a_body_of_another_shape_is_refused(body: bytes) -> None:
    with pytest.raises(BadCall, match="no chat completion"):
        read_call(body, "a/b/1/1")


def test_a_stream_is_refused() -> None:
    with pytest.raises(BadCall, match="stream"):
        read_call(request(stream=True), "a/b/1/1")


def test_the_demos_answers_can_be_used() -> None:
    demo = Path(__file__).parents[2] / "examples" / "notes" / "answers.yaml"
    roles = {entry["role"] for entry in yaml.safe_load(demo.read_text(encoding="utf-8"))}
    places = load_script(demo).places()
    assert all(role in places for role in roles)
