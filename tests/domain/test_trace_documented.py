"""docs/event-log.md and the code hold together: the kinds are read from the sagas' sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.cli.lines import line_of
from domain.build.details import fold_details
from domain.trace.lines import as_line
from domain.trace.tree import fold_trace
from domain.trace.usual.baseline import KIND
from tests.architecture.sources import ROOT, files, name, tree
from tests.domain.trace_stories import BUILD, Saga, reset, whole

DOC = (ROOT / "docs" / "event-log.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| (.*) \|$", re.MULTILINE)
DOCUMENTED = {kind: set(re.findall(r"`([a-z_]+)`", data)) for kind, data in ROW.findall(DOC)}
NOT_DATA = {"attempt", "task"}


def notes() -> Iterator[tuple[str, str, set[str]]]:
    """Where a saga notes something, its kind, and the data that it names; a choice of two kinds is both."""
    for path in files("workflows"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "note":
                named = {keyword.arg for keyword in node.keywords if keyword.arg} - NOT_DATA
                for kind in _kinds(node.args[0]):
                    yield f"{name(path)}:{node.lineno}", kind, named


def _kinds(argument: ast.expr) -> list[str]:
    if isinstance(argument, ast.IfExp):
        return [*_kinds(argument.body), *_kinds(argument.orelse)]
    assert isinstance(argument, ast.Constant), f"a kind that no reader of the sources finds: {ast.unparse(argument)}"
    return [str(argument.value)]


NOTED = list(notes())


def test_every_kind_that_a_saga_notes_is_documented_and_no_other_but_the_derived_one() -> None:
    assert {kind for _, kind, _ in NOTED} | {KIND} == set(DOCUMENTED)


@pytest.mark.parametrize(("where", "kind", "data"), NOTED, ids=[f"{kind} {where}" for where, kind, _ in NOTED])
def test_the_data_of_every_note_is_documented(where: str, kind: str, data: set[str]) -> None:
    assert data - DOCUMENTED.get(kind, set()) == set(), where


def test_the_fields_of_a_line_are_the_documented_ones() -> None:
    table = DOC.partition("| field |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(as_line(whole()[0]))


def test_the_story_of_these_tests_says_what_the_sagas_say() -> None:
    for event in reset():
        assert set(event.data) - DOCUMENTED[event.kind] == set(), event.kind


@pytest.mark.parametrize("kind", sorted(DOCUMENTED))
def test_every_kind_can_be_folded_and_shown_with_the_data_that_is_documented(kind: str) -> None:
    family, said = kind.partition(".")[0], {field: SAMPLES.get(field, "text") for field in DOCUMENTED[kind]}
    task = "api" if family in ("task", "attempt", "change") or kind == "build.taken" else ""
    told = Saga("r").note(5, kind, task=task, attempt=int(family != "task"), **said)
    fold_details(BUILD, [told])
    assert fold_trace(BUILD, [told]).start == 5
    line = line_of(told)
    assert line is None or line.isprintable()


SAMPLES: dict[str, Any] = {
    "tasks": [{"id": "a", "title": "A", "depends_on": [], "files": [], "status": "merged", "commit": "c"}],
    "usage": {"input_tokens": 1, "output_tokens": 1, "cost_micros": None},
    "faults": [],
    "problems": ["why"],
    "conflicts": ["a.py"],
    "missing": [{"task": "a", "why": "w"}],
    "choices": ["approve", "reject"],
    "files": ["a.py"],
    "touched": ["a.py"],
    "pinned": {"seed": 1},
    "green": True,
    "seconds": 0.5,
    "ran": 3,
    "spent": 7,
    "calls": 2,
    "forecast": {"basis": "a guess"},
    "names": ["left-pad"],
    "approved": ["plan"],
    "allow_missing": [],
    "paths": ["a.py"],
    "times": 1,
    "turn": 1,
    "deadline": 9,
    "opened": 1,
    "release": 2,
    "previous": 1,
    "to": 1,
    "position": 1,
    "number": 1,
    "asked": 600,
    "failed": 6,
    "p50": 4.0,
    "p95": 9.5,
    "baseline_asked": 0,
    "risk": 0.4,
    "confidence": 0.8,
    "terms": [{"name": "lines", "weight": 0.15, "amount": 0.2, "share": 0.03, "why": "40 lines"}],
    "residues": ["the unit of release 2 is still there"],
    "waited": 1.5,
    "size": 1000,
}
