"""Identifiers and sentences meet in the same words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.context.words import LONGEST, identifiers, parts, stem, words


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("split_before", ("split", "before")),
        ("splitBefore", ("split", "before")),
        ("HTTPServer2", ("http", "server", "2")),
        ("parseURLNow", ("parse", "url", "now")),
        ("__init__", ("init",)),
        ("utf8", ("utf", "8")),
        ("größe", ("gr", "öß", "e")),
        ("ALL_CAPS", ("all", "caps")),
    ],
)
def test_an_identifier_is_split_where_its_case_and_its_underscores_say(identifier: str, expected: tuple[str]) -> None:
    assert parts(identifier) == expected


def test_an_identifier_gives_its_parts_and_itself() -> None:
    assert list(words("split_before(x)")) == ["split", "befor", "splitbefore"]


def test_a_sentence_and_an_identifier_share_their_words() -> None:
    assert set(words("Splitting the pending orders")) <= {*words("def split_order(): pending")}


@pytest.mark.parametrize(
    "same",
    [
        ("split", "splits", "splitting"),
        ("cache", "caches", "cached", "caching"),
        ("entry", "entries"),
        ("box", "boxes"),
    ],
)
def test_the_endings_of_verbs_and_plurals_are_cut(same: tuple[str, ...]) -> None:
    assert len({stem(word) for word in same}) == 1


def test_different_words_stay_different() -> None:
    assert len({stem(word) for word in ("less", "list", "this", "pass", "past", "ring", "red", "read", "status")}) == 9


@given(st.text(max_size=200))
def test_words_are_lower_case_and_short_whatever_the_text_is(text: str) -> None:
    found = list(words(text))
    assert all(word == word.lower() and 0 < len(word) <= 4 * LONGEST for word in found)
    assert found == list(words(text))


@given(st.from_regex(r"[a-z]{2,8}(_[a-z]{2,8}){0,3}", fullmatch=True))
def test_snake_and_camel_case_are_the_same_words(name: str) -> None:
    camel = "".join(part.title() for part in name.split("_"))
    assert parts(name) == parts(camel)


def test_a_word_that_is_longer_than_any_name_is_data() -> None:
    assert list(words("a" * (LONGEST + 1))) == []


def test_identifiers_are_said_once_and_in_order() -> None:
    assert identifiers("call foo_bar(x, foo_bar) of Baz, 12 times") == ("call", "foo_bar", "Baz", "times")
