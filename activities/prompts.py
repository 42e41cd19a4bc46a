"""Rendering prompts into blobs, where the repository may be read and no key is known."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.documents import read_plan
from activities.intake import Engine
from domain.build.context import ContextFile, fit, listing, wanted_paths
from domain.build.plan import PlannedTask
from domain.build.prompt import Prompt
from domain.build.redaction import redact
from domain.errors import TooLarge
from domain.ports.blobs import Blobs
from domain.ports.language_model import Message
from domain.ports.prompts import PromptTemplates
from domain.ports.workspace import Sources, TreeFile

SENT_BACK = "Your answer could not be used. Answer again in full, as JSON of the same schema. What is wrong with it:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderPlanInput:
    """``problems`` are of the last plan, if there was one."""

    project: str
    base: str
    spec: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderChangeInput:
    """``reason`` and ``report`` (a digest, or "") say what was wrong with the last attempt, whose ``change`` (a digest,
    or "") is shown again."""

    project: str
    base: str
    spec: str
    plan: str
    task: str
    reason: str = ""
    report: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderAgainInput:
    """An answer that fits no schema goes back with its problems."""

    prompt: str
    answer: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """``prompt`` is the blob's digest, ``size`` its bytes."""

    prompt: str
    size: int


class Prompts:
    """Reads mirrors and blobs, writes one blob."""

    def __init__(self, *, engine: Engine, sources: Sources, templates: PromptTemplates, blobs: Blobs) -> None:
        self._engine = engine
        self._sources = sources
        self._templates = templates
        self._blobs = blobs

    @activity.defn
    async def render_plan_prompt(self, request: RenderPlanInput) -> RenderedPrompt:
        """The spec and the tree, for the reasoning model. Raises TooLarge."""
        tree = await self._sources.files(request.project, request.base)
        values = {
            "spec": await self._text(request.spec),
            "tree": listing(tree),
            "problems": request.problems,
            "readme": await self._readme(request, tree),
        }
        return await self._store(self._templates.render("plan", values), request.project)

    @activity.defn
    async def render_change_prompt(self, request: RenderChangeInput) -> RenderedPrompt:
        """The task, the tree, the planned files with their tests, and what was wrong before. Raises TooLarge."""
        plan = await read_plan(self._blobs, request.plan)
        task = plan.task(request.task)
        tree = await self._sources.files(request.project, request.base)
        values = {
            "spec": await self._text(request.spec),
            "task": task,
            "tree": listing(tree),
            "files": await self._context(request, task, tree),
            "reason": request.reason,
            "report": await self._text(request.report),
            "change": await self._text(request.change),
        }
        return await self._store(self._templates.render("change", values), request.project)

    @activity.defn
    async def render_again_prompt(self, request: RenderAgainInput) -> RenderedPrompt:
        """The same conversation, with the answer and what is wrong with it."""
        prompt = Prompt.from_bytes(await self._blobs.get(request.prompt))
        again = prompt.sent_back(await self._text(request.answer), request.problems, wording=SENT_BACK)
        content = again.to_bytes()
        return RenderedPrompt(prompt=await self._blobs.put(content), size=len(content))

    async def _context(
        self, request: RenderChangeInput, task: PlannedTask, tree: tuple[TreeFile, ...]
    ) -> tuple[ContextFile, ...]:
        sizes = {file.path: file.size for file in tree}
        left = self._engine.project(request.project).limits.prompt_bytes * 3 // 4
        shown: list[ContextFile] = []
        for path in wanted_paths(task.files, task.tests, tree):
            if sizes[path] > left:
                shown.append(ContextFile(path=path, text="", left_out=f"{sizes[path]} bytes do not fit"))
                continue
            shown.append(fit(path, await self._sources.read(request.project, request.base, path), left=left))
            left -= len(shown[-1].text.encode())
        return tuple(shown)

    async def _readme(self, request: RenderPlanInput, tree: tuple[TreeFile, ...]) -> str:
        found = next((f for f in tree if f.path.lower().startswith("readme") and f.size < 20_000), None)
        if found is None:
            return ""
        return fit(found.path, await self._sources.read(request.project, request.base, found.path), left=20_000).text

    async def _text(self, digest: str) -> str:
        return (await self._blobs.get(digest)).decode(errors="replace") if digest else ""

    async def _store(self, prompt: Prompt, project: str) -> RenderedPrompt:
        safe = Prompt(
            template=prompt.template,
            version=prompt.version,
            messages=tuple(Message(role=m.role, content=redact(m.content)) for m in prompt.messages),
        )
        content = safe.to_bytes()
        limit = self._engine.project(project).limits.prompt_bytes
        if len(content) > limit:
            raise TooLarge(f"the prompt has {len(content)} bytes, at most {limit} are allowed (limits.prompt_bytes)")
        return RenderedPrompt(prompt=await self._blobs.put(content), size=len(content))
