"""A change becomes a commit on exactly the tree that its prompt showed, in real repositories."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.documents import canonical
from activities.intake import Engine
from activities.prompts import Prompts, RenderAgainInput, RenderChangeInput
from activities.repository.changes import AdvanceHeadInput, AppliedChange, ApplyChangeInput, Changes
from adapters.blobs.memory import MemoryBlobs
from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import open_git
from adapters.prompts.jinja import JinjaPrompts
from domain.build.project import Limits
from domain.errors import InvalidChange, Overtaken, StaleChange

TASK = {"id": "mul", "title": "Multiply", "instructions": "i", "files": ["app.py"], "tests": [], "depends_on": []}
OLD_PROMPT = b'{"messages": [{"content": "hi", "role": "user"}], "template": "change", "version": "v"}'


def operation(action: str, path: str, content: str = "", *edits: tuple[str, str]) -> dict[str, Any]:
    replaced = [{"search": search, "replace": new} for search, new in edits]
    return {"action": action, "path": path, "content": content, "edits": replaced}


class Bench:
    """The activities on a user's repository whose base is fetched and pinned."""

    def __init__(self, folder: Path) -> None:
        self.user = UserRepository(folder / "user")
        self.blobs = MemoryBlobs()
        git = open_git(folder / "state")
        self.mirrors, self.sources = git.mirrors, git.sources
        project = replace(self.user.project(), limits=Limits(files_per_change=2))
        engine = Engine(projects={"shop": project}, reasoning=(), coding=(), heartbeat=5)
        self.changes = Changes(
            engine=engine, workspaces=git.workspaces, mirrors=git.mirrors, sources=git.sources, blobs=self.blobs
        )
        self.prompts = Prompts(engine=engine, sources=git.sources, templates=JinjaPrompts(), blobs=self.blobs)

    async def start(self) -> str:
        """The pinned base."""
        return await self.mirrors.fetch_base(self.user.project(), build="b1")

    async def plan(self) -> str:
        return await self.blobs.put(canonical({"summary": "s", "tasks": [TASK]}))

    async def prompt(self, base: str) -> str:
        spec = await self.blobs.put(b"Multiply, please.")
        request = RenderChangeInput(project="shop", base=base, spec=spec, plan=await self.plan(), task="mul")
        return (await ActivityEnvironment().run(self.prompts.render_change_prompt, request)).prompt

    async def apply(
        self, base: str, *operations: dict[str, Any], prompt: str = "", attempt: int = 1, needs: tuple[str, ...] = ()
    ) -> AppliedChange:
        answer: dict[str, Any] = {"summary": "Add mul", "operations": operations}
        change = await self.blobs.put(canonical(answer | ({"needs": needs} if needs else {})))
        request = ApplyChangeInput(
            project="shop",
            build="b1",
            task="mul",
            plan=await self.plan(),
            base=base,
            change=change,
            model="coder",
            attempt=attempt,
            at=1_700_000_000,
            prompt=prompt,
        )
        applied = await ActivityEnvironment().run(self.changes.apply_change, request)
        assert isinstance(applied, AppliedChange)
        return applied

    async def advance(self, old: str, new: str) -> None:
        move = AdvanceHeadInput(project="shop", build="b1", old=old, new=new)
        await ActivityEnvironment().run(self.changes.advance_head, move)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


NEW = operation("create", "mul.py", "def mul(): ...\n")


async def test_a_change_becomes_a_commit_with_its_diff_and_its_files_digests(bench: Bench) -> None:
    base = await bench.start()
    applied = await bench.apply(base, NEW, prompt=await bench.prompt(base))
    assert (applied.files, applied.touched) == (1, ("mul.py",))
    written = json.loads(await bench.blobs.get(applied.written))
    assert written == {"mul.py": hashlib.sha256(b"def mul(): ...\n").hexdigest()}
    assert b"+def mul(): ..." in await bench.blobs.get(applied.diff)
    assert await bench.sources.read("shop", applied.commit, "mul.py") == b"def mul(): ...\n"


async def test_the_same_change_is_the_same_commit_and_another_attempt_is_not(bench: Bench) -> None:
    base = await bench.start()
    first = await bench.apply(base, NEW)
    assert await bench.apply(base, NEW, prompt=await bench.prompt(base)) == first
    assert (await bench.apply(base, NEW, attempt=2)).commit != first.commit


async def test_a_change_written_against_another_tree_is_stale_though_it_would_fit(bench: Bench) -> None:
    base = await bench.start()
    prompt = await bench.prompt(base)
    other = await bench.apply(base, operation("create", "other.py", "x = 1\n"))
    with pytest.raises(StaleChange, match=rf"mul was written against {base[:12]} and not against {other.commit[:12]}"):
        await bench.apply(other.commit, NEW, prompt=prompt)
    assert (await bench.apply(other.commit, NEW, prompt=await bench.prompt(other.commit))).touched == ("mul.py",)


async def test_an_answer_that_was_sent_back_is_about_the_tree_of_its_first_prompt(bench: Bench) -> None:
    base = await bench.start()
    answer = await bench.blobs.put(b"{")
    request = RenderAgainInput(prompt=await bench.prompt(base), answer=answer, problems=("it is cut off",))
    again = (await ActivityEnvironment().run(bench.prompts.render_again_prompt, request)).prompt
    applied = await bench.apply(base, NEW, prompt=again)
    with pytest.raises(StaleChange):
        await bench.apply(applied.commit, operation("create", "x.py", "x"), prompt=again)


async def test_a_prompt_that_names_no_base_fits_no_tree(bench: Bench) -> None:
    base = await bench.start()
    old = await bench.blobs.put(OLD_PROMPT)
    with pytest.raises(StaleChange, match="no known commit"):
        await bench.apply(base, NEW, prompt=old)


async def test_a_stale_change_leaves_no_commit_behind(bench: Bench) -> None:
    base = await bench.start()
    old = await bench.blobs.put(OLD_PROMPT)
    mirror = next((bench.user.path.parent / "state" / "mirrors").glob("*.git"))

    def objects() -> set[Path]:
        return {path for path in (mirror / "objects").rglob("*") if path.is_file()}

    before = objects()
    with pytest.raises(StaleChange):
        await bench.apply(base, NEW, prompt=old)
    assert objects() == before
    await bench.apply(base, NEW)
    assert objects() > before


async def test_the_projects_limits_hold(bench: Bench) -> None:
    base = await bench.start()
    with pytest.raises(InvalidChange):
        await bench.apply(base, *[operation("create", f"{n}.py", "x\n") for n in range(3)])


async def test_the_head_moves_once_and_a_late_writer_loses(bench: Bench) -> None:
    base = await bench.start()
    mine, late = await bench.apply(base, NEW), await bench.apply(base, operation("create", "late.py", "x\n"))
    for _ in range(2):
        await bench.advance(base, mine.commit)
    with pytest.raises(Overtaken):
        await bench.advance(base, late.commit)
    assert await bench.mirrors.head("shop", build="b1") == mine.commit


async def test_an_answer_that_needs_files_is_no_commit(bench: Bench) -> None:
    base = await bench.start()
    applied = await bench.apply(base, needs=("app.py", "gone.py"), prompt=await bench.prompt(base))
    assert applied == AppliedChange(commit="", written="", diff="", files=0, needs=("app.py",))


async def test_an_answer_with_operations_is_applied_whatever_it_needs(bench: Bench) -> None:
    base = await bench.start()
    applied = await bench.apply(base, NEW, needs=("no such file",))
    assert (applied.touched, applied.needs) == (("mul.py",), ())


async def test_needs_that_name_nothing_go_back_to_the_model(bench: Bench) -> None:
    base = await bench.start()
    with pytest.raises(InvalidChange, match=r"'src/app.py' \(there is app.py\)"):
        await bench.apply(base, needs=("src/app.py",))


async def test_an_answer_with_neither_operations_nor_needs_is_none(bench: Bench) -> None:
    base = await bench.start()
    with pytest.raises(InvalidChange, match="names no file"):
        await bench.apply(base)
