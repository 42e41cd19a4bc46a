"""From a model's text to a domain value: mended where that is safe, refused where it would be a guess."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adapters.compliance.language_model import AnswerSchemasCompliance
from adapters.schemas import ANSWERS, open_schemas
from adapters.schemas.json_text import MAX_BYTES, Unreadable, parse_json
from adapters.schemas.pydantic_schemas import PydanticSchemas
from domain.build.change import Change, Edit, FileOperation
from domain.build.plan import Plan
from domain.ports.language_model import AnswerSchemas

SCHEMAS = open_schemas()
READING: dict[str, TypeAdapter[Any]] = {name: TypeAdapter(answer) for name, answer in ANSWERS.items()}
CODE = 'import re\n\nPATTERN = re.compile("\\\\d+")  # "quoted", {braced}\n\n\ndef f(x):\n    return {"a": [x]}\n'
CHANGE = Change(
    summary="Say it's done",
    operations=(
        FileOperation(action="create", path="a.py", content=CODE, edits=()),
        FileOperation(action="edit", path="b.py", content="", edits=(Edit(search='x = "1"', replace="x = '2'\n"),)),
    ),
)
TEXT = json.dumps(asdict(CHANGE))
PRETTY = json.dumps(asdict(CHANGE), indent=2, ensure_ascii=False)

plain_text = st.text(st.characters(codec="utf-8"))
edits = st.builds(Edit, search=plain_text, replace=plain_text)
operations = st.builds(
    FileOperation,
    action=st.sampled_from(["create", "replace", "edit", "delete"]),
    path=plain_text,
    content=plain_text,
    edits=st.lists(edits, max_size=3).map(tuple),
)
changes = st.builds(Change, summary=plain_text, operations=st.lists(operations, max_size=3).map(tuple))
values = st.one_of(changes, st.from_type(Plan)).filter(lambda value: "\\ud" not in json.dumps(asdict(value)))
fragments = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "\\",
    "//",
    "/*",
    "*/",
    "\n",
    " ",
    "a",
    "1",
    "“",
    "true",
    "```json\n",
    "```",
]
fragments += ['"summary"', '"tasks"', '"a": "b"', "\ud800", "\0", "\\u12", "\\ud83d"]
json_like = st.lists(st.sampled_from(fragments), max_size=60).map("".join)


@dataclass(frozen=True, kw_only=True)
class Counted:
    number: int
    exact: bool


class TestPydantic(AnswerSchemasCompliance):
    """The shared suite."""

    @pytest.fixture
    def schemas(self) -> AnswerSchemas:
        return SCHEMAS


def decoded_change(text: str) -> Change | None:
    value = SCHEMAS.decode("Change", text).value
    return None if value is None else READING[Change.__name__].validate_json(value)


def problem_of(text: str, name: str = "Change") -> str:
    decoded = SCHEMAS.decode(name, text)
    assert decoded.value is None
    return "; ".join(decoded.problems)


@given(values)
def test_any_value_comes_back_equal(value: Any) -> None:
    name = type(value).__name__
    for text in (json.dumps(asdict(value)), json.dumps(asdict(value), ensure_ascii=False, indent=1)):
        decoded = SCHEMAS.decode(name, text)
        assert decoded.problems == ()
        assert decoded.value is not None
        assert READING[name].validate_json(decoded.value) == value


@given(changes)
def test_the_value_has_one_spelling(change: Change) -> None:
    raw = asdict(change)
    shuffled = dict(reversed(raw.items()))
    assert (
        SCHEMAS.decode("Change", json.dumps(raw)).value
        == SCHEMAS.decode("Change", json.dumps(shuffled, indent=3)).value
    )


@given(st.one_of(st.text(), json_like, st.text().map(lambda text: '{"summary": ' + text)))
def test_any_text_is_decoded_or_has_problems(text: str) -> None:
    for name in ANSWERS:
        decoded = SCHEMAS.decode(name, text)
        assert (decoded.value is None) is bool(decoded.problems)
        assert len(decoded.problems) <= 10
        assert all(len(problem) <= 300 and problem.isprintable() for problem in decoded.problems)


@given(changes, st.data())
def test_a_change_that_is_cut_anywhere_is_refused(change: Change, data: st.DataObject) -> None:
    text = json.dumps(asdict(change), ensure_ascii=False)
    end = data.draw(st.integers(0, len(text) - 1))
    assert SCHEMAS.decode("Change", text[:end]).value is None
    assert SCHEMAS.decode("Change", f"Here it is:\n```json\n{text[:end]}\n```").value is None


marks = ['"', "'", "\n", "\t", " ", ",", ":", "{", "}", "[", "]", "(", ")", "a", "b", "\\", "é", "#", "//"]
codelike = st.lists(st.sampled_from(marks), max_size=30)
code_changes = st.builds(
    Change,
    summary=st.just("s"),
    operations=st.builds(
        FileOperation,
        action=st.just("create"),
        path=st.just("a.py"),
        content=codelike.map("".join),
        edits=st.lists(st.builds(Edit, search=codelike.map("".join), replace=st.just("")), max_size=1).map(tuple),
    ).map(lambda operation: (operation,)),
)


@given(code_changes, st.sampled_from(['\\"', "\\n", "\\\\", ", ", ": ", "}", "{", "[", "]"]), st.data())
def test_one_slip_of_a_model_is_mended_to_the_letter_or_refused(change: Change, slip: str, data: st.DataObject) -> None:
    """A quote, line break or backslash of the code is not escaped, or a punctuation mark of the JSON is left out."""
    text = json.dumps(asdict(change), ensure_ascii=False)
    slips = {'\\"': '"', "\\n": "\n", "\\\\": "\\"}
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda string: "_" * len(string[0]), text)
    places = [match.start() for match in re.finditer(re.escape(slip), text if slip in slips else outside)]
    place = data.draw(st.sampled_from(places)) if places else 0
    broken = text[:place] + slips.get(slip, "") + text[place + len(slip) :] if places else text
    try:
        json.loads(broken, strict=False)
    except ValueError:
        assert decoded_change(broken) in (None, change), broken


def test_a_cut_change_is_told_to_be_cut() -> None:
    for end in range(2, len(TEXT)):
        assert "cut off" in problem_of(TEXT[:end]), TEXT[:end]
        assert "cut off" in problem_of("Here it is: " + TEXT[:end])


@pytest.mark.parametrize(
    "text",
    [
        f"Sure! Here's the change [1], it uses {{}} and a \"word\":\n\n```json\n{PRETTY}\n```\n\nIt's done.",
        f"```\n{TEXT}\n```",
        f"<answer>{TEXT}</answer>",
        f"\ufeff{TEXT}\n\n",
        f"{TEXT}\n\n{TEXT}",
        f"// the change\n{TEXT}",
        TEXT[:-1] + ",}",
        TEXT.replace('"edits": []}', '"edits": [],}'),
        PRETTY.replace('"summary"', '/* first */ "summary"'),
        PRETTY.replace(',\n  "operations"', ', // and now\n  "operations"'),
        TEXT.replace("\\n", "\n"),
        TEXT.replace('"summary"', "summary"),
        TEXT.replace("}, {", "} {"),
        TEXT.replace('"action"', "“action”"),
        TEXT.replace('\\"', '"'),
    ],
    ids=["prose", "fence", "tags", "bom", "twice", "comment", "comma", "inner comma", "block comment", "line comment",
         "line breaks", "bare key", "no comma", "round quotes", "bare quotes"],
)  # fmt: skip
def test_what_is_mended_is_the_same_change_to_the_letter(text: str) -> None:
    decoded = SCHEMAS.decode("Change", text)
    assert decoded.problems == ()
    assert decoded_change(text) == CHANGE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TEXT[:-1] + "]", "brackets do not match"),
        ("{change: " + TEXT, "cut off"),
        ("[1, x, " + TEXT, "cut off"),
        (TEXT + '{"summary": "another", "operations": []}', "more than one"),
        (TEXT.replace('"path": "a.py"', '"path": "a.py", "path": "b.py"'), "'path' is given twice"),
        (TEXT.replace("\\\\\\\\d", "\\d"), "not escaped"),
        (TEXT.replace('"a.py"', "None"), "not escaped"),
        ('{"summary": "a", "b" "c", "operations": []}', "$.b: is not a known key"),
        ("I can't do that.", "no JSON object"),
        ("", "no JSON object"),
        (f"[{TEXT}]", "$: Input should be an object"),
        ("x" * (MAX_BYTES + 1), "longer than 4 MiB"),
        ("é" * (MAX_BYTES // 2 + 1), "longer than 4 MiB"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("{" * 100_000, "cut off"),
        ('{"summary": "' + "a" * 100_000 + '", x y}', "too large to be mended"),
        ("1" * 5000, "no JSON object"),
        ('{"summary": NaN, "operations": []}', "no JSON"),
        ('{"summary": "\\ud800", "operations": []}', "surrogate"),
        ('{"summary": "\ud800", "operations": []}', "surrogate"),
        (TEXT.replace('"create"', '"make"'), "$.operations[0].action: Input should be 'create', 'replace', 'edit'"),
        (TEXT.replace('"a.py"', "3"), "$.operations[0].path: Input should be a valid string"),
        (TEXT[:-1] + ', "extra\\n": 1}', "$.extra: is not a known key"),
        (TEXT.replace('"search"', '"find"'), "$.operations[1].edits[0].search: is missing"),
        ('{"summary": "s", "operations": null}', "$.operations: Input should be a valid array"),
        ('{"summary": true, "operations": []}', "$.summary: Input should be a valid string"),
    ],
    ids=[
        "crossed", "cut wrapper", "cut list", "two", "doubled key", "bare backslash", "none", "odd string", "prose",
        "empty", "list", "huge", "huge bytes",
        "deep list", "deep object", "braces", "large and broken", "number", "nan", "surrogate escape", "surrogate",
        "word", "type", "unknown key", "missing key", "null", "bool",
    ],
)  # fmt: skip
def test_what_would_be_a_guess_is_sent_back_with_its_reason(text: str, problem: str) -> None:
    assert problem in problem_of(text)


def test_at_most_ten_problems_are_told() -> None:
    assert len(SCHEMAS.decode("Plan", json.dumps({"summary": 1, "tasks": [{}] * 50})).problems) == 10


def test_a_long_unknown_key_is_told_in_short() -> None:
    assert len(problem_of(json.dumps({"summary": "", "operations": [], "x\x1b" * 5000: 1}))) <= 300


@pytest.mark.parametrize("mark", ["(", "([", "{'a\":,", '{"a": ('])
def test_what_json_repair_is_slow_at_is_not_given_to_it(mark: str) -> None:
    started = time.process_time()  # not the clock: the machine may be busy
    assert SCHEMAS.decode("Change", mark * (30_000 // len(mark))).value is None
    assert time.process_time() - started < 2


def test_nothing_is_coerced() -> None:
    schemas = PydanticSchemas({"Counted": Counted})
    assert schemas.decode("Counted", '{"number": 3, "exact": true}').value == '{"exact":true,"number":3}'
    for text in ('{"number": "3", "exact": true}', '{"number": 3.0, "exact": true}', '{"number": 3, "exact": "yes"}'):
        assert schemas.decode("Counted", text).value is None, text


def test_four_mebibytes_are_decoded_in_seconds() -> None:
    operation = {"action": "create", "path": "a", "content": 'é\n"{' * 590_000, "edits": []}
    text = json.dumps({"summary": "", "operations": [operation]}, ensure_ascii=False)
    for whole in (text, f"Here:\n```json\n{text}\n```"):
        started = time.process_time()
        assert SCHEMAS.decode("Change", whole).problems == ()
        assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ("{'a': 'b'}", {"a": "b"}),
        ("{a: 1, b: [true]}", {"a": 1, "b": [True]}),
        ('{"a": 1} and no more', {"a": 1}),
        ("3", 3),
    ],
)
def test_any_json_is_read_without_a_schema(text: str, value: Any) -> None:
    parsed = parse_json(text)
    assert (parsed.value, parsed.doubts) == (value, ())


def test_the_best_reading_of_a_cut_text_comes_with_its_doubt() -> None:
    parsed = parse_json('{"names": ["Ada", "Gra')
    assert parsed.value == {"names": ["Ada", "Gra"]}
    assert "cut off" in parsed.doubts[0]


@pytest.mark.parametrize("text", ["", "]", "no JSON at all"])
def test_text_without_json_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_json(text)


def test_a_change_may_lack_its_needs_and_may_have_them() -> None:
    plain = json.dumps({"summary": "s", "operations": []})
    assert json.loads(SCHEMAS.decode("Change", plain).value or "")["needs"] == []
    asking = json.dumps({"summary": "s", "operations": [], "needs": ["a.py"]})
    assert json.loads(SCHEMAS.decode("Change", asking).value or "")["needs"] == ["a.py"]
    assert SCHEMAS.decode("Change", json.dumps({"summary": "s", "operations": [], "needs": "a.py"})).value is None
    assert "needs" in SCHEMAS.schema("Change")["required"]
