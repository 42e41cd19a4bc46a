"""What a model is asked: the planned files inside the budget, without secrets, as a blob."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.documents import canonical
from activities.intake import Engine
from activities.prompts import (
    Prompts,
    RenderAgainInput,
    RenderChangeInput,
    RenderedPrompt,
    RenderPlanInput,
    RenderReviewInput,
)
from adapters.blobs.memory import MemoryBlobs
from adapters.prompts.jinja import JinjaPrompts
from domain.build.project import Limits, Project
from domain.build.prompt import Prompt
from domain.errors import InvalidPlan, TooLarge
from domain.ports.workspace import TreeFile

PROJECT = Project(name="calc", repository="/r", branch="main", test=("python3", "-m", "unittest"))
TASK = {
    "id": "mul",
    "title": "Multiply",
    "instructions": "Add mul.",
    "files": ["calc.py", "new.py"],
    "tests": [],
    "depends_on": [],
}


OTHER = {**TASK, "id": "div", "title": "Divide", "instructions": "Add div.", "files": ["div.py"]}
DIFF = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1 +1,2 @@
 def add(): ...
+def mul(): ...
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


class Tree:
    """A commit's files in memory, and what changed to it."""

    def __init__(self, files: Mapping[str, bytes], diff: str) -> None:
        self._files = files
        self._diff = diff

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        return tuple(TreeFile(path=p, size=len(content), kind="file") for p, content in sorted(self._files.items()))

    async def read(self, project: str, commit: str, path: str) -> bytes:
        return self._files[path]

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        return {file.path: self._files[file.path] for file in files}

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        raise AssertionError("no history is asked for here")

    async def diff(self, project: str, old: str, new: str) -> str:
        assert (old, new) == ("c0", "c1")
        return self._diff


class Desk:
    """The activities on one tree."""

    def __init__(self, files: Mapping[str, bytes], *, prompt_bytes: int = 100_000, diff: str = DIFF) -> None:
        self.blobs = MemoryBlobs()
        limits = Limits(prompt_bytes=prompt_bytes)
        engine = Engine(projects={"calc": replace(PROJECT, limits=limits)}, reasoning=(), coding=(), heartbeat=5)
        self.prompts = Prompts(engine=engine, sources=Tree(files, diff), templates=JinjaPrompts(), blobs=self.blobs)

    async def text(self, digest: str) -> str:
        return "\n".join(m.content for m in (await self.prompt(digest)).messages)

    async def prompt(self, digest: str) -> Prompt:
        return Prompt.from_bytes(await self.blobs.get(digest))

    async def review(self, *tasks: str) -> RenderedPrompt:
        plan = await self.blobs.put(canonical({"summary": "s", "tasks": [TASK, OTHER]}))
        spec = await self.blobs.put(b"Multiply, please.")
        request = RenderReviewInput(project="calc", base="c0", commit="c1", spec=spec, plan=plan, tasks=tasks)
        rendered = await ActivityEnvironment().run(self.prompts.render_review_prompt, request)
        assert isinstance(rendered, RenderedPrompt)
        return rendered

    async def change(self, **fields: Any) -> str:
        plan = await self.blobs.put(canonical({"summary": "s", "tasks": [TASK]}))
        spec = await self.blobs.put(b"Multiply, please.")
        request = RenderChangeInput(project="calc", base="c0", spec=spec, plan=plan, task="mul", **fields)
        rendered = await ActivityEnvironment().run(self.prompts.render_change_prompt, request)
        assert isinstance(rendered, RenderedPrompt)
        return await self.text(rendered.prompt)


async def test_a_change_prompt_holds_spec_task_tree_planned_files_and_their_tests() -> None:
    text = await Desk({"calc.py": b"CALC", "test_calc.py": b"TESTS", "other.py": b"OTHER"}).change()
    for part in ("Multiply, please.", "Add mul.", "other.py (5 bytes)", "CALC", "TESTS"):
        assert part in text
    assert "OTHER" not in text


async def test_a_file_over_the_budget_is_named_not_cut() -> None:
    text = await Desk({"calc.py": b"x" * 90_000, "test_calc.py": b"TESTS"}).change()
    assert "`calc.py` is not shown: 90000 bytes do not fit" in text
    assert "TESTS" in text


async def test_a_prompt_over_the_limit_is_refused_with_its_size() -> None:
    desk = Desk({"calc.py": b""}, prompt_bytes=1_000)
    with pytest.raises(TooLarge, match=r"at most 1000 are allowed \(limits.prompt_bytes\)"):
        await desk.change()


async def test_a_secret_in_the_repository_does_not_leave_it() -> None:
    token = "ghp_" + "a1B2" * 9
    text = await Desk({"calc.py": f"TOKEN = '{token}'".encode()}).change()
    assert token not in text
    assert "TOKEN = '[redacted]'" in text


async def test_what_was_wrong_is_taken_from_its_blobs() -> None:
    desk = Desk({"calc.py": b"CALC"})
    report, change = await desk.blobs.put(b"AssertionError: 5 != 6"), await desk.blobs.put(b"+wrong line")
    text = await desk.change(reason="1 of 3 tests failed", report=report, change=change)
    assert "1 of 3 tests failed" in text
    assert "AssertionError: 5 != 6" in text
    assert "+wrong line" in text


async def test_files_that_the_earlier_work_touched_are_shown_though_the_plan_does_not_name_them() -> None:
    desk = Desk({"calc.py": b"CALC", "undeclared file.py": b"UNDECLARED", "other.py": b"OTHER"})
    change = await desk.blobs.put(DIFF.replace("gone.py", "undeclared file.py").encode())
    text = await desk.change(reason="it does not merge", change=change)
    assert "UNDECLARED" in text
    assert "OTHER" not in text


async def test_files_that_the_report_or_the_reason_names_are_shown() -> None:
    desk = Desk({"calc.py": b"CALC", "both.py": b"BOTH", "said.py": b"SAID", "other.py": b"OTHER"})
    report = await desk.blobs.put(b"- both.py, line 3: it overflows")
    text = await desk.change(reason="a person says: look at said.py", report=report)
    assert "BOTH" in text
    assert "SAID" in text
    assert "OTHER" not in text


async def test_a_planned_file_comes_before_what_a_report_names_when_room_is_short() -> None:
    desk = Desk({"calc.py": b"C" * 700, "both.py": b"B" * 14_400}, prompt_bytes=20_000)
    text = await desk.change(reason="both.py conflicts")
    assert "C" * 700 in text
    assert "`both.py` is not shown: 14400 bytes do not fit" in text


async def test_an_earlier_change_that_is_too_large_does_not_make_the_task_impossible() -> None:
    desk = Desk({"calc.py": b"CALC"}, prompt_bytes=20_000)
    change = await desk.blobs.put(DIFF.replace("+def mul", "+" + "x" * 50_000).encode())
    text = await desk.change(reason="red", change=change)
    assert "[not shown, because they do not fit: calc.py]" in text
    assert "diff --git a/gone.py" in text
    assert "CALC" in text


async def test_every_prompt_names_the_commit_that_it_shows() -> None:
    desk = Desk({"calc.py": b"CALC"})
    spec = await desk.blobs.put(b"Multiply, please.")
    plan = await desk.blobs.put(canonical({"summary": "s", "tasks": [TASK]}))
    first = await ActivityEnvironment().run(
        desk.prompts.render_plan_prompt, RenderPlanInput(project="calc", base="c7", spec=spec)
    )
    request = RenderChangeInput(project="calc", base="c8", spec=spec, plan=plan, task="mul")
    second = await ActivityEnvironment().run(desk.prompts.render_change_prompt, request)
    again = await ActivityEnvironment().run(
        desk.prompts.render_again_prompt, RenderAgainInput(prompt=second.prompt, answer=spec, problems=("no JSON",))
    )
    shown = [(await desk.prompt(rendered.prompt)).base for rendered in (first, second, again, await desk.review())]
    assert shown == ["c7", "c8", "c8", "c1"]


async def test_a_review_prompt_shows_spec_tasks_diff_and_the_touched_files_with_line_numbers() -> None:
    desk = Desk({"calc.py": b"def add(): ...\ndef mul(): ...\n", "other.py": b"OTHER"})
    rendered = await desk.review()
    text = await desk.text(rendered.prompt)
    for part in (
        "Multiply, please.",
        "Task `mul`",
        "Add mul.",
        "Task `div`",
        "+def mul(): ...",
        "    2 | def mul(): ...",
    ):
        assert part in text
    assert "OTHER" not in text
    assert "`gone.py` as it is now" not in text
    assert (await desk.blobs.get(rendered.diff)).decode() == DIFF


async def test_a_review_of_a_part_of_the_plan_says_what_is_missing() -> None:
    desk = Desk({"calc.py": b""})
    text = await desk.text((await desk.review("mul")).prompt)
    assert "tasks of its plan are not a part of it (div)" in text
    assert "Add div." not in text


async def test_a_diff_over_the_budget_is_cut_by_files_and_says_which() -> None:
    large = DIFF.replace("+def mul(): ...", "+" + "x" * 30_000)
    desk = Desk({"calc.py": b"def add(): ...\n"}, prompt_bytes=20_000, diff=large)
    rendered = await desk.review()
    text = await desk.text(rendered.prompt)
    assert rendered.size <= 20_000
    assert "not shown, because they do not fit:\n\n```\ncalc.py\n```" in text
    assert "diff --git a/gone.py" in text
    assert "    1 | def add(): ..." in text, "what is left of the room is for the files"
    assert (await desk.blobs.get(rendered.diff)).decode() == large


async def test_the_files_have_the_room_that_the_diff_leaves() -> None:
    diff = DIFF.replace("+def mul(): ...", "+" + "x" * 8_000)
    desk = Desk({"calc.py": b"x" * 8_000}, prompt_bytes=20_000, diff=diff)
    text = await desk.text((await desk.review()).prompt)
    assert "+" + "x" * 8_000 in text
    assert "`calc.py` as it is now is not shown: 8000 bytes do not fit" in text


async def test_a_touched_file_that_does_not_fit_with_its_numbers_is_named() -> None:
    desk = Desk({"calc.py": b"x\n" * 5_000}, prompt_bytes=20_000)
    assert "`calc.py` as it is now is not shown: 10000 bytes do not fit" in await desk.text(
        (await desk.review()).prompt
    )


async def test_a_secret_in_a_reviewed_diff_does_not_leave_the_repository() -> None:
    token = "ghp_" + "a1B2" * 9
    desk = Desk({"calc.py": b""}, diff=DIFF.replace("def mul", token))
    text = await desk.text((await desk.review()).prompt)
    assert token not in text
    assert "+[redacted]" in text


async def test_an_unknown_task_is_no_prompt() -> None:
    desk = Desk({})
    plan = await desk.blobs.put(canonical({"summary": "s", "tasks": []}))
    request = RenderChangeInput(project="calc", base="c0", spec=plan, plan=plan, task="mul")
    with pytest.raises(InvalidPlan, match="no task 'mul'"):
        await ActivityEnvironment().run(desk.prompts.render_change_prompt, request)


async def test_a_plan_prompt_shows_the_readme_and_the_last_plans_problems() -> None:
    desk = Desk({"README.md": b"# Calculator", "calc.py": b""})
    spec = await desk.blobs.put(b"Multiply, please.")
    request = RenderPlanInput(project="calc", base="c0", spec=spec, problems=("the plan has no task",))
    rendered = await ActivityEnvironment().run(desk.prompts.render_plan_prompt, request)
    text = await desk.text(rendered.prompt)
    assert "# Calculator" in text
    assert "- the plan has no task" in text


async def test_a_huge_answer_goes_back_without_its_middle_because_what_goes_back_is_paid_for() -> None:
    desk = Desk({"calc.py": b"CALC"})
    spec = await desk.blobs.put(b"Multiply, please.")
    first = await ActivityEnvironment().run(
        desk.prompts.render_plan_prompt, RenderPlanInput(project="calc", base="c0", spec=spec)
    )
    answer = await desk.blobs.put(b"begin" + b"x" * 4_000_000 + b"end")
    again = await ActivityEnvironment().run(
        desk.prompts.render_again_prompt,
        RenderAgainInput(prompt=first.prompt, answer=answer, problems=("the answer is cut off",)),
    )
    said = json.loads(await desk.blobs.get(again.prompt))["messages"][2]["content"]
    assert len(said) < 21_000
    assert said.startswith("begin")
    assert said.endswith("end")
    assert "[3980008 characters are left out here]" in said


async def test_an_answer_goes_back_in_the_same_conversation() -> None:
    desk = Desk({"calc.py": b"CALC"})
    spec = await desk.blobs.put(b"Multiply, please.")
    first = await ActivityEnvironment().run(
        desk.prompts.render_plan_prompt, RenderPlanInput(project="calc", base="c0", spec=spec)
    )
    answer = await desk.blobs.put(b'{"summary": ')
    again = await ActivityEnvironment().run(
        desk.prompts.render_again_prompt,
        RenderAgainInput(prompt=first.prompt, answer=answer, problems=("the answer is cut off",)),
    )
    messages = json.loads(await desk.blobs.get(again.prompt))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"].endswith("- the answer is cut off")
