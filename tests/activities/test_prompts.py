"""What a model is asked: the planned files inside the budget, without secrets, as a blob."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from activities.documents import canonical
from activities.intake import Engine
from activities.prompts import Prompts, RenderAgainInput, RenderChangeInput, RenderedPrompt, RenderPlanInput
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


class Tree:
    """A commit's files in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        return tuple(TreeFile(path=p, size=len(content), kind="file") for p, content in sorted(self._files.items()))

    async def read(self, project: str, commit: str, path: str) -> bytes:
        return self._files[path]

    async def diff(self, project: str, old: str, new: str) -> str:
        raise NotImplementedError


class Desk:
    """The activities on one tree."""

    def __init__(self, files: Mapping[str, bytes], *, prompt_bytes: int = 100_000) -> None:
        self.blobs = MemoryBlobs()
        limits = Limits(prompt_bytes=prompt_bytes)
        engine = Engine(projects={"calc": replace(PROJECT, limits=limits)}, reasoning=(), coding=(), heartbeat=5)
        self.prompts = Prompts(engine=engine, sources=Tree(files), templates=JinjaPrompts(), blobs=self.blobs)

    async def text(self, digest: str) -> str:
        return "\n".join(m.content for m in Prompt.from_bytes(await self.blobs.get(digest)).messages)

    async def change(self, **fields: str) -> str:
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
    assert "did not pass: 1 of 3 tests failed" in text
    assert "AssertionError: 5 != 6" in text
    assert "+wrong line" in text


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
