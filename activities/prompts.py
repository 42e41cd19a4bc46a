"""Rendering prompts into blobs, where the repository may be read and no key is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from temporalio import activity

from activities.documents import canonical, read_plan
from activities.intake import Engine
from activities.repository.reading import Pages, open_pages
from activities.repository.selecting import Selection, Selector, Wish, named_once
from domain.build.context import listing, named_paths, wanted_paths
from domain.build.project import Limits
from domain.build.prompt import Prompt
from domain.build.redaction import redact
from domain.build.strategy import strategy
from domain.context.packing import Measure
from domain.context.tokens import tokens
from domain.errors import TooLarge
from domain.ports.blobs import Blobs
from domain.ports.code import CodeIndex
from domain.ports.language_model import Message
from domain.ports.prompts import PromptTemplates
from domain.ports.workspace import Sources
from domain.review.diff import diff_parts, fit_change, fit_diff

_PLANNING_PART = 3  # a planner chooses by outlines: it gets a third of what a coder gets
_PLANNING_OUTLINES = 60
SENT_BACK = "Your answer could not be used. Answer again in full, as JSON of the same schema. What is wrong with it:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderPlanInput:
    """``problems`` are of the last plan, if there was one."""

    project: str
    base: str
    spec: str
    problems: tuple[str, ...] = ()
    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderChangeInput:
    """``reason``, a sentence, says why the task is written again: red tests, a conflict, findings, a person's hint.
    ``report`` (a digest, or "") shows it in full, ``change`` (a digest, or "") what was written last.

    ``needs`` are paths that the model asked for in the rounds before this one (at most ``rounds`` of them are left).
    ``strategy`` names a way of working, see domain/build/strategy.py.
    """

    project: str
    base: str
    spec: str
    plan: str
    task: str
    reason: str = ""
    report: str = ""
    change: str = ""
    needs: tuple[str, ...] = ()
    rounds: int = 0
    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderReviewInput:
    """What changed from ``base`` to ``commit``. ``tasks`` are the plan's tasks that it holds, () for all of them."""

    project: str
    base: str
    commit: str
    spec: str
    plan: str
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderAgainInput:
    """An answer that fits no schema goes back with its problems."""

    prompt: str
    answer: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """``prompt`` is the blob's digest, ``size`` its bytes; ``diff`` the digest of the reviewed diff, "" elsewhere.
    ``manifest`` is the digest of what was shown of the repository and why ("" where nothing was chosen), ``tokens`` an
    estimate of that, ``shown`` how many files were shown in full."""

    prompt: str
    size: int
    diff: str = ""
    manifest: str = ""
    tokens: int = 0
    shown: int = 0


class Prompts:
    """Reads mirrors and blobs, writes blobs. Without an index of the ``code`` only what is named is shown."""

    def __init__(
        self,
        *,
        engine: Engine,
        sources: Sources,
        templates: PromptTemplates,
        blobs: Blobs,
        code: CodeIndex | None = None,
    ) -> None:
        self._engine = engine
        self._sources = sources
        self._templates = templates
        self._blobs = blobs
        self._selector = Selector(sources=sources, index=code)

    @activity.defn
    async def render_plan_prompt(self, request: RenderPlanInput) -> RenderedPrompt:
        """The spec, the tree and outlines of what it is about, for the planner. Raises TooLarge, UnknownName."""
        limits = self._engine.project(request.project).limits
        pages = await open_pages(self._sources, request.project, request.base)
        spec, readme = await self._text(request.spec), await pages.readme()
        budget = _budget(limits, _room(limits, spec, readme)) // _PLANNING_PART
        measure = Measure(budget=budget, full=0, outlines=_PLANNING_OUTLINES, floor=0.05)
        chosen = await self._select(pages, measure, {}, spec)
        values = {
            "spec": spec,
            "tree": listing(pages.tree),
            "outlines": chosen.outlines,
            "problems": request.problems,
            "readme": readme,
            "strategy": strategy(request.strategy).planning,
        }
        return await self._recorded(await self._render("plan", values, pages), chosen)

    @activity.defn
    async def render_change_prompt(self, request: RenderChangeInput) -> RenderedPrompt:
        """The task, the tree, the files that it is about, and why it is written again. Raises TooLarge, UnknownName.

        What the model asked for comes first, then what the plan names, their tests, what the reason names, and what
        the selector found; all inside ``limits.context_tokens``.
        """
        limits = self._engine.project(request.project).limits
        plan = await read_plan(self._blobs, request.plan)
        task = plan.task(request.task)
        pages = await open_pages(self._sources, request.project, request.base)
        spec, report = await self._text(request.spec), await self._text(request.report)
        change = await self._text(request.change)
        left = _room(limits, spec, report)
        shown = fit_change(change, limit=left // 2)
        named = (*(part.path for part in diff_parts(change)), *named_paths(f"{request.reason}\n{report}", pages.tree))
        present = {file.path for file in pages.tree}
        planned = [path for path in task.files if path in present]
        wanted = named_once(
            ("asked", request.needs),
            ("planned", planned),
            ("test", wanted_paths(task.files, task.tests, pages.tree)),
            ("report", named),
        )
        measure = Measure(budget=_budget(limits, left - len(shown.encode())))
        words = f"{task.title}\n{task.instructions}\n{spec}\n{request.reason}"
        chosen = await self._select(pages, measure, wanted, words)
        values = {
            "spec": spec,
            "task": task,
            "tree": listing(pages.tree),
            "files": chosen.files,
            "outlines": chosen.outlines,
            "asked": [path for path in request.needs if path in present],
            "rounds": request.rounds,
            "strategy": strategy(request.strategy).coding,
            "reason": request.reason,
            "report": report,
            "change": shown,
        }
        return await self._recorded(await self._render("change", values, pages), chosen)

    @activity.defn
    async def render_review_prompt(self, request: RenderReviewInput) -> RenderedPrompt:
        """The spec, the tasks, the diff and the touched files as they are now, for the reviewer. Raises TooLarge."""
        limits = self._engine.project(request.project).limits
        plan = await read_plan(self._blobs, request.plan)
        merged = request.tasks or tuple(task.id for task in plan.tasks)
        tasks = [task for task in plan.tasks if task.id in merged]
        spec = await self._text(request.spec)
        diff = await self._sources.diff(request.project, request.base, request.commit)
        parts = diff_parts(diff)
        left = _room(limits, spec, *(task.instructions for task in tasks))
        shown = fit_diff(parts, limit=left)
        pages = await open_pages(self._sources, request.project, request.commit)
        values = {
            "spec": spec,
            "tasks": tasks,
            "missing": [task.id for task in plan.tasks if task.id not in merged],
            "diff": shown,
            "files": await pages.show((part.path for part in parts), left=left - len(shown.text.encode()), lines=True),
        }
        rendered = await self._render("review", values, pages)
        return replace(rendered, diff=await self._blobs.put(diff.encode()))

    @activity.defn
    async def render_again_prompt(self, request: RenderAgainInput) -> RenderedPrompt:
        """The same conversation, with the answer and what is wrong with it."""
        prompt = Prompt.from_bytes(await self._blobs.get(request.prompt))
        again = prompt.sent_back(await self._text(request.answer), request.problems, wording=SENT_BACK)
        content = again.to_bytes()
        return RenderedPrompt(prompt=await self._blobs.put(content), size=len(content))

    async def _select(self, pages: Pages, measure: Measure, named: Mapping[str, str], text: str) -> Selection:
        wish = Wish(project=pages.project, commit=pages.commit, named=named, text=text, measure=measure)
        return await self._selector.select(wish, pages.tree)

    async def _recorded(self, rendered: RenderedPrompt, chosen: Selection) -> RenderedPrompt:
        """With the manifest of what it shows."""
        manifest = chosen.manifest
        digest = await self._blobs.put(canonical(manifest.to_json()))
        return replace(rendered, manifest=digest, tokens=manifest.tokens, shown=len(manifest.paths("full")))

    async def _text(self, digest: str) -> str:
        return (await self._blobs.get(digest)).decode(errors="replace") if digest else ""

    async def _render(self, template: str, values: Mapping[str, object], pages: Pages) -> RenderedPrompt:
        prompt = self._templates.render(template, values)
        messages = tuple(Message(role=m.role, content=redact(m.content)) for m in prompt.messages)
        content = replace(prompt, messages=messages, base=pages.commit).to_bytes()
        limit = self._engine.project(pages.project).limits.prompt_bytes
        if len(content) > limit:
            raise TooLarge(f"the prompt has {len(content)} bytes, at most {limit} are allowed (limits.prompt_bytes)")
        return RenderedPrompt(prompt=await self._blobs.put(content), size=len(content))


def _budget(limits: Limits, left: int) -> int:
    """Tokens for what is shown of the repository, of which ``left`` bytes fit into the prompt."""
    return min(limits.context_tokens, tokens(max(0, left)))


def _room(limits: Limits, *needed: str) -> int:
    """Bytes for what may be left out, beside the texts that may not."""
    return limits.prompt_bytes * 3 // 4 - sum(len(text.encode()) for text in needed)
