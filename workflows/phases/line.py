"""One task's way through the build: written in its own saga, merged, sent back, or put to a person."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from temporalio import workflow
from temporalio.exceptions import (
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowHandle

from workflows.context import Build, Wanted
from workflows.faults import last_fault
from workflows.phases.merging import SentBack, Work
from workflows.policies import WORKFLOW_TASK
from workflows.task_saga import TaskSaga

with workflow.unsafe.imports_passed_through():
    from domain.build.names import task_saga_id
    from domain.build.requests import TaskOutcome, TaskRequest
    from domain.errors import Aborted, Overbilled
    from domain.flow.board import ASKING, MERGED, RUNNING, SKIPPED, WRITTEN, Node, must_wait, undeclared
    from domain.human.asks import STUCK, Answer
    from domain.human.raising import Raised

if TYPE_CHECKING:
    from workflows.phases.tasks import Crew

EARLIER_LIFE_SECONDS = 2


class Line:
    """Drives one task's state until it is merged or skipped."""

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
        if outcome.status != "green":
            self._stuck(outcome.kind, outcome.sentence)
            return
        await self._locks(outcome.touched)
        await self._merge(Work.of(outcome))

    async def _child(self) -> TaskOutcome:
        build, node = self._build, self._node
        await build.effects.clear()
        request = self._request()
        try:
            handle = await self._start(request)
            build.children[node.id] = handle
            outcome: TaskOutcome = await handle
        except ChildWorkflowError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            outcome = self._failed(request, error)
        finally:
            build.children.pop(node.id, None)
        build.effects.heed_cancellation()
        return outcome

    async def _start(self, request: TaskRequest) -> ChildWorkflowHandle[TaskSaga, TaskOutcome]:
        """A build that was reset meets the task of its earlier life: that one has to end first."""
        build, saga = self._build, task_saga_id(request.build, request.task)
        title = next(brief.title for brief in build.briefs if brief.id == request.task)
        while True:
            try:
                return await workflow.start_child_workflow(
                    TaskSaga.run,
                    asdict(request),
                    id=saga,
                    task_timeout=WORKFLOW_TASK,
                    parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                    cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                    static_summary=title,
                )
            except WorkflowAlreadyStartedError:
                with contextlib.suppress(FailureError):  # it ended in the meantime
                    await workflow.get_external_workflow_handle(saga).cancel()
            await build.effects.rest(EARLIER_LIFE_SECONDS, summary="the task's earlier life ends")

    def _failed(self, request: TaskRequest, error: ChildWorkflowError) -> TaskOutcome:
        """A task that fails never takes its siblings with it; a bill that nobody can explain stops everything."""
        fault = last_fault(error)
        if fault.kind == "Overbilled":
            raise Overbilled(fault.sentence) from error
        attempt = request.first + request.attempts - 1  # all numbers that it may have used
        return TaskOutcome(
            task=request.task,
            commit="",
            ran=-1,
            attempt=attempt,
            status="stuck",
            kind=fault.kind,
            sentence=fault.sentence,
        )

    def _request(self) -> TaskRequest:
        build, state, admitted = self._build, self._state, self._build.admitted
        return TaskRequest(
            build=build.name,
            project=admitted.project,
            task=self._node.id,
            plan=build.state.plan,
            spec=admitted.spec,
            base=build.head.commit,
            base_ran=build.head.ran,
            attempts=admitted.limits.attempts,
            chain=admitted.coding,
            heartbeat=admitted.heartbeat,
            output_tokens=admitted.limits.output_tokens,
            model_seconds=admitted.limits.model_seconds,
            test_seconds=admitted.limits.test_seconds,
            allow_missing=build.request.allow_missing,
            first=state.attempt + 1,
            reason=state.reason,
            report=state.report,
            change=state.change,
            user=build.request.user,
            places=admitted.limits.project_parallel,
            budget=admitted.budget,
            paused=build.effects.paused,
        )

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
            choices=STUCK,
            document={"kind": state.kind, "tried": state.tried, "spent": asdict(spent)},
        )
        await self._act(await build.question(wanted))

    async def _act(self, answer: Answer) -> None:
        build, state = self._build, self._state
        match answer.choice:
            case "retry" | "raise":
                build.raise_limits(Raised.of(answer))
                if answer.reason:
                    state.reason = f"{state.sentence}. A person says: {answer.reason}"
                state.sent_back = 0
                state.status = RUNNING
            case "take":
                await self._take(answer)
            case "abort":
                raise Aborted(
                    f"{answer.by} ended the build at task {self._node.id}: {answer.reason or 'no reason given'}"
                )
            case _:
                state.status = SKIPPED
                build.recorder.note("task.skipped", task=self._node.id, sentence=f"{answer.by}: {state.sentence}"[:300])

    async def _take(self, answer: Answer) -> None:
        """A commit by hand is the task's result if it merges and its tests are green; else the question stays."""
        work = await self._crew.merger.taken(self._node.id, answer.commit)
        if isinstance(work, str):
            self._stuck(self._state.kind, work)
            return
        kind, sent_back = self._state.kind, self._state.sent_back
        await self._merge(replace(work, ran=None))
        if self._state.status != MERGED:
            self._state.sent_back = sent_back
            self._stuck(kind, f"the commit {work.commit[:12]} was not accepted: {self._state.reason}")
