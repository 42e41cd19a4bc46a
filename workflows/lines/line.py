"""One task's way through the build: written in its own saga, merged, sent back, or put to a person."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from temporalio import workflow

from workflows.context import Build, Wanted
from workflows.lines.child import run_task, task_request
from workflows.lines.merging import SentBack, Work

with workflow.unsafe.imports_passed_through():
    from domain.build.requests import TaskOutcome
    from domain.errors import Aborted
    from domain.flow.board import ASKING, MERGED, RUNNING, SKIPPED, WAITING, WRITTEN, Node, must_wait, undeclared
    from domain.human.asks import STUCK, UNKNOWN, Answer
    from domain.human.raising import Raised

if TYPE_CHECKING:
    from workflows.phases.tasks import Crew


class Line:
    """Drives one task's state until it is merged, skipped, or waits for its start again."""

    def __init__(self, *, build: Build, node: Node, crew: Crew) -> None:
        self._build = build
        self._node = node
        self._crew = crew
        self._state = build.state.tasks[node.id]

    async def run(self) -> None:
        """Raises Aborted when a person ends the build here, Overbilled."""
        while self._state.status in (RUNNING, ASKING):
            if self._state.status == ASKING:
                await self._ask()
            else:
                await self._write()
            self._crew.stir()
            await self._build.recorder.flush(self._build.effects)

    async def _write(self) -> None:
        outcome = await self._child()
        self._state.attempt = max(self._state.attempt, outcome.attempt)
        self._state.remember(
            attempt=str(outcome.attempt),
            outcome=outcome.sentence or outcome.status,
            diff=outcome.diff,
            report=outcome.report,
            model=outcome.model,
        )
        self._state.commit, self._state.base, self._state.packages = outcome.commit, outcome.base, outcome.packages
        if outcome.status != "green":
            self._stuck(outcome.kind, outcome.sentence)
            return
        self._state.action, self._state.why = outcome.action, outcome.why
        await self._locks(outcome.touched)
        await self._merge(Work.of(outcome))

    async def _child(self) -> TaskOutcome:
        build = self._build
        await build.effects.clear()
        return await run_task(build, task_request(build, self._node.id))

    async def _locks(self, touched: tuple[str, ...]) -> None:
        """Take the locks of files that nobody declared for this task; wait while one is another's who still writes."""
        build, state = self._build, self._state
        paths = undeclared(self._node, touched)
        state.status = WRITTEN
        if not paths:
            return
        if holder := must_wait(self._node, paths, self._crew.nodes, build.state.tasks):
            build.recorder.note("task.waits", task=self._node.id, holder=holder, files=list(paths[:5]))
            await build.recorder.flush(build.effects)
            await workflow.wait_condition(
                lambda: must_wait(self._node, paths, self._crew.nodes, build.state.tasks) is None
            )
        state.locks = (*state.locks, *paths)

    async def _merge(self, work: Work) -> None:
        state = self._state
        state.status = WRITTEN
        refused = await self._crew.merger.merge(work)
        if refused is None:
            state.status, state.kind, state.sentence, state.locks = MERGED, "", "", ()
            state.reason = state.report = state.change = ""
            await self._crew.merged()
            return
        self._send_back(refused)

    def _send_back(self, refused: SentBack) -> None:
        build, state = self._build, self._state
        state.sent_back += 1
        state.reason, state.report, state.change = refused.sentence, refused.report, refused.change
        build.recorder.note(
            "task.sent_back",
            task=self._node.id,
            why=refused.why,
            times=state.sent_back,
            sentence=refused.sentence,
            report=refused.report,
        )
        if state.sent_back > build.admitted.limits.sent_back:
            self._stuck("MergeRefused", f"sent back more than {state.sent_back - 1} times; {refused.sentence}")
        else:
            state.status = RUNNING

    def _stuck(self, kind: str, sentence: str) -> None:
        state = self._state
        state.status, state.kind, state.sentence = ASKING, kind, sentence
        self._build.recorder.note("task.stuck", task=self._node.id, fault=kind, sentence=sentence[:300])

    async def _ask(self) -> None:
        build, state = self._build, self._state
        spent = await build.spent(task=self._node.id)
        wanted = Wanted(
            about="task",
            task=self._node.id,
            sentence=f"task {self._node.id} is stuck: {state.sentence}",
            choices=UNKNOWN if state.packages else STUCK,
            document={**self._document(), "spent": asdict(spent)},
        )
        await self._act(await build.question(wanted))

    def _document(self) -> dict[str, Any]:
        state = self._state
        packages = {"packages": list(state.packages)} if state.packages else {}
        return {"kind": state.kind, "tried": state.tried, **packages}

    async def _act(self, answer: Answer) -> None:
        build, state = self._build, self._state
        match answer.choice:
            case "retry" | "raise":
                build.raise_limits(Raised.of(answer))
                if answer.reason:
                    state.reason = f"{state.sentence}. A person says: {answer.reason}"
                state.sent_back = 0
                state.status = WAITING  # for a place and its files, like every task that starts
            case "allow":
                await self._allow(answer)
            case "take":
                await self._take(answer)
            case "abort":
                raise Aborted(
                    f"{answer.by} ended the build at task {self._node.id}: {answer.reason or 'no reason given'}"
                )
            case _:
                state.status = SKIPPED
                build.recorder.note("task.skipped", task=self._node.id, sentence=f"{answer.by}: {state.sentence}"[:300])

    async def _allow(self, answer: Answer) -> None:
        """What was written goes on to its gates, with the packages that it wants; red, it is written again."""
        build, state = self._build, self._state
        build.state.packages = tuple(dict.fromkeys((*build.state.packages, *state.packages)))
        build.recorder.note("packages.allowed", task=self._node.id, names=list(state.packages), by=answer.by)
        last = state.tried[-1] if state.tried else {}
        work = Work(
            task=self._node.id,
            base=state.base,
            commit=state.commit,
            ran=None,
            diff=last.get("diff", ""),
            model=last.get("model", ""),
        )
        state.packages = ()
        await self._merge(work)

    async def _take(self, answer: Answer) -> None:
        """A commit by hand is the task's result if it merges and its tests are green; else the question stays."""
        work = await self._crew.merger.taken(self._node.id, answer.commit)
        if isinstance(work, str):
            self._stuck(self._state.kind, work)
            return
        kind, sent_back = self._state.kind, self._state.sent_back
        await self._merge(work)
        if self._state.status != MERGED:
            self._state.sent_back = sent_back
            self._stuck(kind, f"the commit {work.commit[:12]} was not accepted: {self._state.reason}")
