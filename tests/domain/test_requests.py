"""What starts a saga is decoded with one clear sentence for everything that does not fit."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.requests import (
    MAX_SPEC_BYTES,
    BuildRequest,
    TaskRequest,
    decode,
    decode_build_request,
    title_of,
)
from domain.errors import InvalidInput, MendworkError, TooLarge

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "one JSON object, not nothing"),
        ("a spec", "one JSON object, not a text"),
        ([], "one JSON object, not a list"),
        ({}, "'spec' is missing"),
        ({"spec": "x", "specs": "y"}, "unknown field 'specs'; known: spec, project"),
        ({"spec": 3}, "'spec' has to be a text, not a number"),
        ({"spec": True}, "'spec' has to be a text, not true or false"),
        ({"spec": "x", "allow_missing": "memory"}, "'allow_missing' has to be a list of texts, not a text"),
        ({"spec": "x", "allow_missing": [1]}, "'allow_missing' has to be a list of texts, not a list"),
        ({"spec": " \n\t "}, "the spec is empty"),
    ],
)
def test_a_mistyped_start_says_which_field_and_why(value: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        decode_build_request(value)


def test_a_spec_over_the_limit_is_refused_with_its_size() -> None:
    with pytest.raises(TooLarge, match=f"{MAX_SPEC_BYTES + 1} bytes"):
        decode_build_request({"spec": "x" * (MAX_SPEC_BYTES + 1)})


@given(JSON)
def test_no_json_escapes_the_decoder(value: object) -> None:
    with contextlib.suppress(MendworkError):
        assert decode_build_request(value).spec.strip()


@given(st.builds(BuildRequest, spec=st.text(min_size=1).filter(str.strip)))
def test_a_request_survives_its_own_json(request_: BuildRequest) -> None:
    assert decode_build_request(asdict(request_)) == request_


def test_a_task_request_takes_lists_for_tuples_and_whole_numbers_for_seconds() -> None:
    fields = {
        "build": "b",
        "project": "p",
        "task": "t",
        "plan": "",
        "spec": "",
        "base": "",
        "base_ran": 3,
        "attempts": 3,
        "chain": ["a", "b"],
        "heartbeat": 2,
        "output_tokens": 10,
        "model_seconds": 1.5,
        "test_seconds": 60,
    }
    request = decode(TaskRequest, {**fields, "weights": {"files": 1}})
    assert request.weights == {"files": 1.0}
    with pytest.raises(InvalidInput, match=r"'weights.files' has to be a number, not a text"):
        decode(TaskRequest, {**fields, "weights": {"files": "1"}})
    assert request.chain == ("a", "b")
    assert request.heartbeat == 2.0


def test_the_title_is_the_first_line_with_words_and_one_printable_line() -> None:
    assert title_of(BuildRequest(spec="\n## Tags on notes ##\nmore")) == "Tags on notes"
    assert title_of(BuildRequest(spec="x", title="a\x1b[31mred\nb")) == "a [31mred b"
    assert len(title_of(BuildRequest(spec="y" * 500))) == 100
