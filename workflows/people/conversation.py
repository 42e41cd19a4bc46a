"""What people say to a build: each thing as a signal (a fact) and as an update (answered), in plain JSON, forgiving."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.context import Build
from workflows.people.answering import Answering
from workflows.phases.planning import adopt
from workflows.policies import WORKSPACE

with workflow.unsafe.imports_passed_through():
    from activities.planning import AdoptPlanInput, CheckedPlan, Planning
    from domain.errors import MendworkError
    from domain.human.asks import Saying, decode_saying, whole
    from domain.human.book import Ruling
    from domain.human.raising import decode_raised
    from domain.ports.releases import UNCLEAR

SAID = {
    "edit_plan": 'Replace the plan that waits for its approval: {"plan": {…}, "by"}.',
    "raise_limits": 'Raise limits: {"task_budget", "build_budget", … in USD, "calls", "attempts", "by"}.',
    "pause": 'Start no new call, task or merge: {"by"}.',
    "resume_now": 'End a pause, and every wait of the build\'s own: {"by"}.',
}


class Conversation(Answering):
    """The handlers of BuildSaga, one pair for each thing that can be said; they decode by themselves."""

    _build: Build
    _main: asyncio.Task[Any] | None = None
    _aborted: str = ""

    async def _say(self, what: str, raw: Any) -> dict[str, str]:
        try:
            ruling = await self._rule(what, {} if raw is None else raw)
        except MendworkError as error:
            ruling = self._build.desk.refuse(str(error), choice=what)
        await self._build.recorder.flush(self._build.effects, heed=False)
        return asdict(ruling)

    async def _rule(self, what: str, raw: Any) -> Ruling:
        build = self._build
        if what in ("approve", "reject"):
            return build.desk.receive(raw, choice=what)
        if what == "answer":
            return build.desk.receive(raw)
        if build.desk.over or (what == "abort" and build.effects.shielded):
            return build.desk.refuse("the build has ended", choice=what)
        match what:
            case "edit_plan":
                return await self._edit(decode_saying(raw))
            case "raise_limits":
                return await self._raise(raw)
            case "pause" | "resume_now":
                return await self._pause(what, decode_saying(raw))
        return self._abort(decode_saying(raw))

    async def _edit(self, said: Saying) -> Ruling:
        build = self._build
        asked = build.state.asked.get("plan:")
        waiting = asked.id if asked else ""
        if waiting not in build.state.book.open:
            return build.desk.refuse("no plan waits for its approval", choice="edit_plan", by=said.by)
        adopt_plan = AdoptPlanInput(plan=said.plan, max_tasks=build.admitted.limits.tasks)
        adopted = await build.effects.last(WORKSPACE, Planning.adopt_plan, adopt_plan)
        if adopted.problems:
            return build.desk.refuse(f"the plan cannot be run: {adopted.problems[0]}", choice="edit_plan", by=said.by)
        if waiting not in build.state.book.open:
            return build.desk.refuse("the plan was decided meanwhile", choice="edit_plan", by=said.by)
        adopt(build, adopted.plan, CheckedPlan(tasks=adopted.tasks, problems=()))
        build.desk.supersede(waiting)
        return Ruling(outcome="accepted", reason=f"the plan is {adopted.plan[:12]} now, and waits for its approval")

    async def _raise(self, raw: Any) -> Ruling:
        build, asked = self._build, decode_raised(raw)
        if build.state.admitted is None:
            return build.desk.refuse("the build is not admitted yet", choice="raise_limits", by=asked.by)
        build.raise_limits(asked)
        build.recorder.note("limits.raised", **asdict(asked))
        await self._tell("set_budget", build.budget)
        return Ruling(outcome="accepted", reason="the limits hold for what starts from now on")

    async def _pause(self, what: str, said: Saying) -> Ruling:
        build, paused = self._build, what == "pause"
        changed, build.effects.paused = build.effects.paused != paused, paused
        if not paused:
            build.effects.hurry()
        if changed:
            build.recorder.note("build.paused" if paused else "build.resumed", by=said.by)
        await self._tell(what)
        done = "paused: no new call, task or merge starts" if paused else "going on"
        return Ruling(outcome="accepted", reason=done if changed or not paused else "it is paused already")

    def _abort(self, said: Saying) -> Ruling:
        self._aborted = f"{said.by} ended the build: {said.reason or 'no reason given'}"
        self._build.effects.abort()
        if self._main is not None:
            self._main.cancel()
        return Ruling(outcome="accepted", reason="the build ends, and undoes what it did")

    async def _tell(self, what: str, *arguments: Any) -> None:
        """Every running task; one that ends in the same moment does not need to know."""
        for child in list(self._build.children.values()):
            with contextlib.suppress(FailureError):
                await child.signal(what, args=arguments)

    @workflow.signal(name="delivered", description="From its delivery: how it ended.")
    def delivered_signal(self, raw: Any = None) -> None:
        """The first report counts."""
        if isinstance(raw, Mapping) and not self._build.state.delivered:
            report = {"status": str(raw.get("status", UNCLEAR)), "sentence": str(raw.get("sentence", ""))[:1_000]}
            self._build.state.delivered = {**report, "release": whole(raw.get("release"))}

    @workflow.signal(name="edit_plan", description=SAID["edit_plan"])
    async def edit_plan_signal(self, raw: Any = None) -> None:
        await self._say("edit_plan", raw)

    @workflow.signal(name="raise_limits", description=SAID["raise_limits"])
    async def raise_limits_signal(self, raw: Any = None) -> None:
        await self._say("raise_limits", raw)

    @workflow.signal(name="pause", description=SAID["pause"])
    async def pause_signal(self, raw: Any = None) -> None:
        await self._say("pause", raw)

    @workflow.signal(name="resume_now", description=SAID["resume_now"])
    async def resume_now_signal(self, raw: Any = None) -> None:
        await self._say("resume_now", raw)

    @workflow.update(name="edit_plan", description=SAID["edit_plan"])
    async def edit_plan_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("edit_plan", raw)

    @workflow.update(name="raise_limits", description=SAID["raise_limits"])
    async def raise_limits_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("raise_limits", raw)

    @workflow.update(name="pause", description=SAID["pause"])
    async def pause_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("pause", raw)

    @workflow.update(name="resume_now", description=SAID["resume_now"])
    async def resume_now_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("resume_now", raw)
