"""Rendering prompts into blobs, where the repository may be read and no key is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from temporalio import activity

from activities.documents import read_plan
from activities.intake import Engine
from activities.repository.reading import Pages, open_pages
from domain.build.context import listing, named_paths, wanted_paths
from domain.build.prompt import Prompt
from domain.build.redaction import redact
from domain.errors import TooLarge
from domain.ports.blobs import Blobs
from domain.ports.language_model import Message
from domain.ports.prompts import PromptTemplates
from domain.ports.workspace import Sources
from domain.review.diff import diff_parts, fit_change, fit_diff

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
    """Reads mirrors and blobs, writes blobs."""

    def __init__(self, *, engine: Engine, sources: Sources, templates: PromptTemplates, blobs: Blobs) -> None:
        self._engine = engine
        self._sources = sources
        self._templates = templates
        self._blobs = blobs

    @activity.defn
    async def render_plan_prompt(self, request: RenderPlanInput) -> RenderedPrompt:
        """The spec and the tree, for the reasoning model. Raises TooLarge."""
        pages = await open_pages(self._sources, request.project, request.base)
        values = {
            "spec": await self._text(request.spec),
            "tree": listing(pages.tree),
            "problems": request.problems,
            "readme": await pages.readme(),
        }
        return await self._render("plan", values, pages)

    @activity.defn
    async def render_change_prompt(self, request: RenderChangeInput) -> RenderedPrompt:
        """The task, the tree, the files that it is about, and why it is written again. Raises TooLarge."""
        plan = await read_plan(self._blobs, request.plan)
        task = plan.task(request.task)
        pages = await open_pages(self._sources, request.project, request.base)
        spec, report = await self._text(request.spec), await self._text(request.report)
        change = await self._text(request.change)
        left = self._room(request.project, spec, report)
        shown = fit_change(change, limit=left // 2)
        named = (*(part.path for part in diff_parts(change)), *named_paths(f"{request.reason}\n{report}", pages.tree))
        paths = (*wanted_paths(task.files, task.tests, pages.tree), *named)
        values = {
            "spec": spec,
            "task": task,
            "tree": listing(pages.tree),
            "files": await pages.show(paths, left=left - len(shown.encode())),
            "reason": request.reason,
            "report": report,
            "change": shown,
        }
        return await self._render("change", values, pages)

    @activity.defn
    async def render_review_prompt(self, request: RenderReviewInput) -> RenderedPrompt:
        """The spec, the tasks, the diff and the touched files as they are now, for the reviewer. Raises TooLarge."""
        plan = await read_plan(self._blobs, request.plan)
        merged = request.tasks or tuple(task.id for task in plan.tasks)
        tasks = [task for task in plan.tasks if task.id in merged]
        spec = await self._text(request.spec)
        diff = await self._sources.diff(request.project, request.base, request.commit)
        parts = diff_parts(diff)
        left = self._room(request.project, spec, *(task.instructions for task in tasks))
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

    def _room(self, project: str, *needed: str) -> int:
        """Bytes for what may be left out, beside the texts that may not."""
        room = self._engine.project(project).limits.prompt_bytes * 3 // 4
        return room - sum(len(text.encode()) for text in needed)

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
