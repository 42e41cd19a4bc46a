"""One selector: what it shows of real commits, what it writes down, and that it is the same everywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.documents import canonical
from activities.intake import Engine
from activities.prompts import Prompts, RenderChangeInput, RenderedPrompt, RenderPlanInput
from activities.repository.selecting import Selector, Wish, named_once
from adapters.blobs.memory import MemoryBlobs
from adapters.code import open_code
from adapters.prompts.jinja import JinjaPrompts
from domain.build.project import Limits, Project
from domain.build.prompt import Prompt
from domain.context.packing import Measure
from domain.errors import UnknownName
from tests.seeded.measuring import FolderSources

FILES: Mapping[str, bytes] = {
    "shop/__init__.py": b"",
    "shop/weights.py": b"from shop.rounding import up\n\n"
    b'def parcel_weight(items):\n    """Grams of all items."""\n    return up(items)\n',
    "shop/rounding.py": b"def up(value):\n    return -(-value // 1)\n",
    "shop/labels.py": b"from shop.weights import parcel_weight\n\n"
    b"def print_label(items):\n    return str(parcel_weight(items))\n",
    "shop/login.py": b"def check_password(user):\n    return bool(user)\n",
    "tests/test_weights.py": b"from shop.weights import parcel_weight\n\ndef test_it(): assert parcel_weight\n",
    "logo.png": b"\x89PNG\0\0",
}
TASK = {
    "id": "round", "title": "Round weights", "instructions": "Weights are rounded up.", "files": ["shop/weights.py"],
    "tests": [], "depends_on": [],
}  # fmt: skip
PROJECT = {"name": "calc", "repository": "/r", "branch": "main", "test": ("pytest",)}


def wish(text: str, *, named: Mapping[str, str] | None = None, budget: int = 5_000) -> Wish:
    return Wish(project="calc", commit="c0", named=named or {}, text=text, measure=Measure(budget=budget))


def selector(state: Path, files: Mapping[str, bytes] = FILES) -> tuple[Selector, FolderSources]:
    sources = FolderSources(files)
    return Selector(sources=sources, index=open_code(state)), sources


class Desk:
    """The prompts of one project with an index."""

    def __init__(self, state: Path, files: Mapping[str, bytes] = FILES, **limits: int) -> None:
        self.blobs = MemoryBlobs()
        project = Project(**PROJECT, limits=Limits(**limits))  # type: ignore[arg-type]
        self.prompts = Prompts(
            engine=Engine(projects={"calc": project}, reasoning=(), coding=(), heartbeat=5),
            sources=FolderSources(files),
            templates=JinjaPrompts(),
            blobs=self.blobs,
            code=open_code(state),
        )

    async def change(self, spec: str = "Parcels weigh too little.", **fields: Any) -> tuple[RenderedPrompt, str]:
        plan = await self.blobs.put(canonical({"summary": "s", "tasks": [TASK]}))
        digest = await self.blobs.put(spec.encode())
        request = RenderChangeInput(project="calc", base="c0", spec=digest, plan=plan, task="round", **fields)
        return await self._told(await ActivityEnvironment().run(self.prompts.render_change_prompt, request))

    async def plan(self, spec: str, **fields: Any) -> tuple[RenderedPrompt, str]:
        request = RenderPlanInput(project="calc", base="c0", spec=await self.blobs.put(spec.encode()), **fields)
        return await self._told(await ActivityEnvironment().run(self.prompts.render_plan_prompt, request))

    async def manifest(self, rendered: RenderedPrompt) -> Any:
        return json.loads(await self.blobs.get(rendered.manifest))

    async def _told(self, rendered: RenderedPrompt) -> tuple[RenderedPrompt, str]:
        prompt = Prompt.from_bytes(await self.blobs.get(rendered.prompt))
        return rendered, "\n".join(message.content for message in prompt.messages)


async def test_planned_files_come_first_then_their_tests_and_their_neighbours_with_the_reason(tmp_path: Path) -> None:
    chosen, sources = selector(tmp_path)
    named = {"shop/weights.py": "planned"}
    manifest = (await chosen.select(wish("Something", named=named), sources.tree())).manifest
    assert [(e.path, e.why) for e in manifest.entries] == [
        ("shop/weights.py", "planned"),
        ("tests/test_weights.py", "test"),
        ("shop/rounding.py", "callee"),
        ("shop/labels.py", "caller"),
    ]
    assert manifest.paths("full") == tuple(e.path for e in manifest.entries)


async def test_words_alone_find_the_file(tmp_path: Path) -> None:
    chosen, sources = selector(tmp_path)
    found = await chosen.select(wish("The weight of a parcel is wrong by a gram."), sources.tree())
    assert found.manifest.entries[0].path == "shop/weights.py"
    assert found.files[0].text == FILES["shop/weights.py"].decode()
    assert "shop/login.py" not in [entry.path for entry in found.manifest.entries]


async def test_the_same_inputs_give_the_same_manifest_with_another_index_and_another_history(tmp_path: Path) -> None:
    first, sources = selector(tmp_path / "a")
    second, _ = selector(tmp_path / "b")
    old = FolderSources({**FILES, "shop/weights.py": b"def parcel(): ...\n", "gone.py": b"def parcel_weight(): ...\n"})
    await Selector(sources=old, index=second.index).select(wish("parcel"), old.tree())
    asked = wish("The weight of a parcel", named={"shop/labels.py": "planned"})
    manifests = [(await each.select(asked, sources.tree())).manifest for each in (first, second, first)]
    assert len({canonical(manifest.to_json()) for manifest in manifests}) == 1


async def test_a_file_that_is_no_text_is_left_out_and_the_manifest_says_so(tmp_path: Path) -> None:
    chosen, sources = selector(tmp_path)
    found = await chosen.select(wish("x", named={"logo.png": "planned"}), sources.tree())
    assert [(e.how, e.reason, e.tokens) for e in found.manifest.entries] == [("left out", "it is not text", 0)]
    assert found.files[0].left_out == "it is not text"


async def test_what_the_tree_does_not_have_is_not_shown(tmp_path: Path) -> None:
    chosen, sources = selector(tmp_path)
    found = await chosen.select(wish("x", named={"../etc/passwd": "asked", "new.py": "planned"}), sources.tree())
    assert found.manifest.entries == ()


async def test_a_change_prompt_records_what_it_shows_and_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    rendered, text = await desk.change()
    manifest = await desk.manifest(rendered)
    assert manifest["entries"][0] == {
        "path": "shop/weights.py", "why": "planned", "how": "full", "score": 0.0, "tokens": 31, "reason": "",
    }  # fmt: skip
    assert manifest["commit"] == "c0"
    assert manifest["budget"] == Limits().context_tokens
    assert (rendered.tokens, rendered.shown) == (manifest["tokens"], 4)
    assert FILES["shop/labels.py"].decode() in text
    assert "check_password" not in text


async def test_a_budget_holds_and_what_does_not_fit_is_shown_by_its_symbols(tmp_path: Path) -> None:
    long = {**FILES, "shop/labels.py": FILES["shop/labels.py"] + b"# filler\n" * 400}
    rendered, text = await Desk(tmp_path, long, context_tokens=200).change()
    assert rendered.tokens <= 200
    assert "`shop/labels.py`:\n\n```\n    3 | def print_label(items):\n```" in text
    assert "filler" not in text


async def test_files_that_the_model_asked_for_are_shown_in_full_before_all_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    rendered, text = await desk.change(needs=("shop/login.py", "gone.py"), rounds=2)
    manifest = await desk.manifest(rendered)
    assert [(e["path"], e["why"], e["how"]) for e in manifest["entries"][:2]] == [
        ("shop/login.py", "asked", "full"),
        ("shop/weights.py", "planned", "full"),
    ]
    assert FILES["shop/login.py"].decode() in text
    assert "You can do so 2 more times." in text
    assert "You asked to see these" in text


async def test_a_model_whose_rounds_are_used_up_is_told_so(tmp_path: Path) -> None:
    _, text = await Desk(tmp_path).change(rounds=0)
    assert "You cannot ask for more files" in text


async def test_a_planner_sees_outlines_of_what_the_spec_is_about_and_no_bodies(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    rendered, text = await desk.plan("The weight of a parcel is wrong.")
    assert "`shop/weights.py`:\n\n```\n    3 | def parcel_weight(items):\n```" in text
    assert "return up(items)" not in text
    assert rendered.shown == 0
    assert (await desk.manifest(rendered))["entries"][0]["how"] == "outline"


async def test_a_planner_chooses_among_thousands_of_files_that_the_list_cuts(tmp_path: Path) -> None:
    many = {f"a/module{n}.py": f"def handler{n}(): ...\n".encode() for n in range(2_500)}
    _, text = await Desk(tmp_path, {**many, "z/parcels.py": FILES["shop/weights.py"]}).plan(
        "A parcel's weight is wrong."
    )
    assert "z/parcels.py (" not in text, "the list of files ends before it"
    assert "`z/parcels.py`:" in text


async def test_a_strategy_is_said_to_both_models_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "smallest change" in (await desk.plan("x", strategy="smallest"))[1]
    assert "smallest change" in (await desk.change(strategy="smallest"))[1]
    assert "smallest change" not in (await desk.change())[1]
    with pytest.raises(UnknownName, match=r"'fast'; known: smallest, tests-first"):
        await desk.change(strategy="fast")


async def test_a_secret_in_a_file_that_was_only_found_does_not_leave_the_repository(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    files = {**FILES, "shop/weights.py": FILES["shop/weights.py"] + f"TOKEN = '{token}'\n".encode()}
    _, text = await Desk(tmp_path, files).change()
    assert "[redacted]" in text
    assert token not in text


def test_a_path_is_shown_for_its_first_reason() -> None:
    assert named_once(("asked", ["a"]), ("planned", ["b", "a"])) == {"a": "asked", "b": "planned"}
