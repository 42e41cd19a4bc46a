"""What a person is shown before deciding: facts and the real diff, printable whatever a model wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.blobs.memory import MemoryBlobs
from adapters.cli.decide.dialogue import answer
from adapters.cli.decide.packet import Packet, read_packet
from domain.human.asks import decode_answer
from domain.trace.asks import AskDetails

DIFF = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1,2 @@\n-x = 1\n+x = 2\n+\ty = 3\n"
SPENT = {"settled": 12_300, "held": 0, "unknown": 0, "written_off": 0, "calls": 4}
FINDINGS = {
    "summary": "mostly fine",
    "findings": [
        {"task": "api", "file": "calc.py", "line": 0, "severity": "low", "message": "a name"},
        {"task": "api", "file": "calc.py", "line": 7, "severity": "high", "message": "divides by zero"},
    ],
}


def ask(digest: str, about: str = "change", **changes: Any) -> AskDetails:
    fields: dict[str, Any] = {
        "id": f"{about}-1",
        "about": about,
        "kind": "approval" if about in ("plan", "change") else "question",
        "digest": digest,
        "sentence": "12 tests passed",
        "choices": ("approve", "reject"),
        "opened": 1,
        "deadline": 2,
    }
    return AskDetails(**{**fields, **changes})


async def packet(document: Any, about: str = "change", **blobs: str) -> Packet:
    """``blobs`` are texts whose digests take the place of their names in the document."""
    store = MemoryBlobs()
    text = json.dumps(document)
    for name, content in blobs.items():
        text = text.replace(f'"@{name}"', f'"{await store.put(content.encode(errors="surrogatepass"))}"')
    return await read_packet(store, ask(await store.put(text.encode()), about))


async def test_a_change_shows_tests_review_missing_cost_and_the_diff() -> None:
    review = {"findings": "@found", "high": 1, "medium": 0, "low": 1, "weak": True, "model": "coder", "round": 1}
    document = {
        "about": "change",
        "gates": {"green": True, "reason": "12 tests passed", "ran": 12},
        "findings": review,
        "missing": [{"task": "web", "why": "it was skipped"}],
        "spent": {**SPENT, "unknown": 2_000},
        "base": "a" * 40,
        "commit": "b" * 40,
        "diff": "@diff",
    }
    shown = await packet(document, diff=DIFF, found=json.dumps(FINDINGS))
    assert shown.lines == (
        "12 tests passed",
        "tests: green, 12 tests passed, 12 ran",
        "missing: web: it was skipped",
        "cost so far: $0.0123 in 4 calls, and up to $0.0020 of calls without a bill",
        "commits: aaaaaaaaaaaa..bbbbbbbbbbbb",
        "review by coder, which also wrote it: a weak review: 1 high, 0 medium, 1 low",
        "  high  calc.py:7  divides by zero",
        "  low  calc.py  a name",
    )
    assert shown.diff == tuple(DIFF.splitlines())


async def test_a_finding_that_a_person_let_pass_is_told_with_who_did() -> None:
    left = {"model": "judge", "high": 1, "findings": "", "left": "still serious", "by": "ann"}
    assert "left by ann: still serious" in (await packet({"findings": left})).lines


async def test_a_stuck_task_shows_what_was_tried_and_the_last_diff() -> None:
    tried = [
        {"attempt": "1", "outcome": "1 of 3 tests failed", "model": "coder", "diff": "@first", "report": "@report"},
        {"attempt": "2", "outcome": "2 of 3 tests failed", "model": "second", "diff": "@diff", "report": ""},
    ]
    shown = await packet({"tried": tried, "spent": SPENT}, "task", first="+no\n", diff=DIFF, report="E  5 != 6\n")
    assert shown.lines[-3:] == (
        "attempt 1 by coder: 1 of 3 tests failed",
        "  | E  5 != 6",
        "attempt 2 by second: 2 of 3 tests failed",
    )
    assert shown.diff == tuple(DIFF.splitlines())


async def test_a_plan_shows_its_tasks_their_order_files_and_instructions() -> None:
    first = {"id": "mul", "title": "Add mul", "instructions": "Do it.", "files": ["calc.py"], "depends_on": []}
    second = {**first, "id": "square", "title": "Add square", "files": [], "depends_on": ["mul"]}
    shown = await packet({"summary": "two", "tasks": [first, second]}, "plan")
    assert shown.lines[1:] == (
        "mul: Add mul",
        "  Do it.",
        "  files: calc.py",
        "square: Add square (after mul)",
        "  Do it.",
        "  files: none named",
    )


async def test_what_nobody_judged_is_not_called_green() -> None:
    assert (await packet({"gates": {"ran": 5}})).lines[1:] == ("tests: 5 ran",)


@pytest.mark.parametrize("digest", ["f" * 64, "short", ""])
async def test_a_packet_that_cannot_be_read_is_said_and_no_reason_to_fail(digest: str) -> None:
    shown = await read_packet(MemoryBlobs(), ask(digest))
    assert shown.lines == ("12 tests passed", f"(its packet {digest[:12]} cannot be read from here)")


async def test_a_diff_that_is_gone_leaves_the_rest() -> None:
    shown = await packet({"gates": {"green": False, "reason": "2 of 3 failed", "ran": -1}, "diff": "0" * 64})
    assert shown == Packet(lines=("12 tests passed", "tests: red, 2 of 3 failed"))


HOSTILE = st.text(alphabet=st.characters(), max_size=40) | st.sampled_from(["\x1b[2J", "\u202e evil", "a\rb", "\x07"])


@given(HOSTILE, HOSTILE)
async def test_no_text_of_a_model_reaches_the_terminal_with_control_characters(one: str, two: str) -> None:
    document: Mapping[str, Any] = {
        "gates": {"green": True, "reason": one, "ran": 1},
        "missing": [{"task": one, "why": two}],
        "findings": {"model": one, "left": two, "by": one, "findings": "@found"},
        "tried": [{"attempt": one, "outcome": two, "model": one, "diff": "@diff", "report": "@diff"}],
    }
    found = json.dumps({"findings": [{"severity": "high", "file": one, "line": 1, "message": two}]})
    shown = await packet(document, "task", diff=f"+{one}\n-{two}", found=found)
    assert all(line.isprintable() for line in shown.lines)
    assert all(line.replace("\t", "").isprintable() for line in shown.diff)


@given(st.sampled_from(["retry", "skip", "take", "abort", "approve", "reject"]), st.text(max_size=50))
def test_what_the_dialogue_sends_is_what_the_build_understands(word: str, rest: str) -> None:
    about = "change" if word in ("approve", "reject") else "task"
    said = answer(ask("ab" * 32, about, task="api"), word, rest.strip(), by="ann")
    decoded = decode_answer(said["words"], choice=word if about == "change" else "")
    assert decoded.choice == word
    assert decoded.digest == ("ab" * 32 if about == "change" else "")
    assert decoded.ask == ("" if about == "change" else "task-1")
    assert (decoded.commit if word == "take" else decoded.reason) == rest.strip()


@pytest.mark.parametrize(("task", "budget"), [("api", "task_budget"), ("", "build_budget")])
def test_raising_by_a_number_raises_what_the_question_is_about(task: str, budget: str) -> None:
    said = answer(ask("d", "task" if task else "review", task=task), "raise", "$2.50", by="ann")
    assert said["words"][budget] == 2.5
    with pytest.raises(ValueError, match="much"):
        answer(ask("d", "task", task=task), "raise", "much", by="ann")
