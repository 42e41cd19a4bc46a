"""What fits into a budget, in which form, and why not."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from domain.context.packing import Manifest, Measure, Offer, pack
from domain.context.tokens import room, tokens

OFFERS = st.lists(
    st.builds(
        Offer,
        path=st.text("abc/", min_size=1, max_size=6),
        why=st.just("ranked"),
        size=st.integers(0, 4_000),
        score=st.floats(0, 1),
        outline=st.text("x", max_size=300),
        unfit=st.sampled_from(["", "", "it is not text"]),
        must=st.booleans(),
    ),
    max_size=30,
)


def must(path: str, size: int, outline: str = "") -> Offer:
    return Offer(path=path, why="planned", size=size, outline=outline, must=True)


def found(path: str, size: int, score: float, outline: str = "    1 | def f():\n") -> Offer:
    return Offer(path=path, why="ranked", size=size, score=score, outline=outline)


@given(OFFERS, st.integers(0, 3_000))
def test_a_budget_is_never_exceeded_and_every_offer_is_accounted_for(offers: list[Offer], budget: int) -> None:
    entries = pack(offers, Measure(budget=budget))
    assert sum(entry.tokens for entry in entries) <= budget
    assert [entry.path for entry in entries] == [offer.path for offer in offers]
    assert all((entry.how == "full") == (not entry.reason) for entry in entries)
    assert all(entry.tokens == 0 for entry in entries if entry.how in ("listed", "left out"))


@given(st.integers(0, 10_000_000))
def test_what_has_room_costs_no_more_than_its_budget(budget: int) -> None:
    assert tokens(room(budget)) <= budget


def test_what_was_named_comes_in_full_before_anything_that_was_only_found() -> None:
    entries = pack([must("planned.py", 700), found("other.py", 700, 1.0)], Measure(budget=300))
    assert [(e.path, e.how) for e in entries] == [("planned.py", "full"), ("other.py", "outline")]


def test_a_named_file_that_does_not_fit_is_an_outline_or_left_out_and_says_why() -> None:
    entries = pack([must("a.py", 7_000, "    1 | def f():\n"), must("b.bin", 7_000)], Measure(budget=100))
    assert [(e.how, e.reason) for e in entries] == [
        ("outline", "7000 bytes do not fit"),
        ("left out", "7000 bytes do not fit"),
    ]


def test_one_found_file_does_not_take_the_room_of_all_others() -> None:
    offers = [found("a.py", 1_000, 1.0), found("huge.py", 2_400, 0.9), *(found(f"{n}.py", 300, 0.8) for n in range(4))]
    shown = pack(offers, Measure(budget=1_100))
    assert [e.path for e in shown if e.how == "full"] == ["a.py", "0.py", "1.py", "2.py", "3.py"]


def test_what_little_speaks_for_is_listed_though_there_is_room() -> None:
    entries = pack([found("a.py", 10, 1.0), found("b.py", 10, 0.01)], Measure(budget=10_000))
    assert [(e.how, e.reason) for e in entries] == [("full", ""), ("listed", "little speaks for it")]


def test_a_planner_sees_outlines_only() -> None:
    entries = pack([found(f"{n}.py", 10, 1.0) for n in range(5)], Measure(budget=10_000, full=0, outlines=3))
    assert [e.how for e in entries] == ["outline"] * 3 + ["listed"] * 2


def test_a_manifest_says_what_was_shown_and_its_sum() -> None:
    entries = pack([must("a.py", 70), found("b.py", 70, 0.5)], Measure(budget=1_000))
    manifest = Manifest(commit="c0", budget=1_000, files=2, entries=entries)
    said = json.loads(json.dumps(manifest.to_json()))
    assert said["tokens"] == manifest.tokens == 40
    assert said["entries"][0] == {
        "path": "a.py", "why": "planned", "how": "full", "score": 0.0, "tokens": 20, "reason": "",
    }  # fmt: skip
    assert manifest.paths("full") == ("a.py", "b.py")
