"""The tasks phase: every task that may run runs, each in a saga of its own; what is stuck asks a person."""

from __future__ import annotations

import asyncio

from temporalio import workflow

from workflows.context import Build
from workflows.faults import Stopped
from workflows.lines.line import Line
from workflows.lines.merging import Merger
from workflows.phases.planning import read_briefs
from workflows.resume.snapshots import snapshot_among_tasks

with workflow.unsafe.imports_passed_through():
    from domain.flow.board import ASKING, BLOCKED, ENDED, RUNNING, Node, block, startable


async def tasks(build: Build) -> str:
    """Run the plan's tasks to their ends. Asks for itself again when the history is full and everything has drained.

    Raises what ends the whole build: Aborted, Overbilled, NeedsHuman when nothing at all was merged.
    """
    await build.enter("tasks")
    await read_briefs(build)
    crew = Crew(build)
    try:
        await crew.work()
    finally:
        await crew.dismiss()
    states = build.state.tasks
    if any(state.status not in ENDED for state in states.values()):
        return "tasks"
    if build.head == build.base:
        raise _nothing(build)
    return "review" if build.admitted.consent.review else "approve"


class Crew:
    """The lines at work: one coroutine for each task that runs or waits for a person."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self.nodes = tuple(Node(id=b.id, depends_on=b.depends_on, files=b.files) for b in build.briefs)
        self._lines: dict[str, asyncio.Task[None]] = {}
        self._dirty = False
        self._was_paused = False
        self.merger = Merger(build)

    async def work(self) -> None:
        """Until every task has ended; or, with a full history, until only people are waited for."""
        self._resume()
        while not self._ended() and not self._drained():
            self._dirty = False
            self._block()
            self._start()
            if self._ended():
                return
            await workflow.wait_condition(self._stirred)
            for name in [name for name, line in self._lines.items() if line.done()]:
                self._lines.pop(name).result()

    def stir(self) -> None:
        """A task's state changed: others may start now."""
        self._dirty = True

    async def merged(self) -> None:
        """A task's work is in the head: a state to come back to."""
        await snapshot_among_tasks(self._build)

    async def dismiss(self) -> None:
        """Stop the lines that still run, and wait until each has stopped."""
        for line in self._lines.values():
            line.cancel()
        while any(not line.done() for line in self._lines.values()):
            try:
                await workflow.wait(list(self._lines.values()))
            except asyncio.CancelledError:  # asked again while they stop: they are stopping
                continue
        for line in self._lines.values():
            if not line.cancelled():
                line.exception()

    def _resume(self) -> None:
        """What an earlier run left waiting for a person goes on waiting."""
        for node in self.nodes:
            if self._build.state.tasks[node.id].status == ASKING:
                self._begin(node)

    def _start(self) -> None:
        build, limits = self._build, self._build.admitted.limits
        self._was_paused = build.effects.paused
        if build.full or self._was_paused:
            return
        for name in startable(self.nodes, build.state.tasks, limit=limits.parallel):
            build.state.tasks[name].status = RUNNING
            self._begin(next(node for node in self.nodes if node.id == name))

    def _begin(self, node: Node) -> None:
        line = Line(build=self._build, node=node, crew=self)
        self._lines[node.id] = asyncio.create_task(line.run())

    def _block(self) -> None:
        states = self._build.state.tasks
        for name, missing in block(self.nodes, states).items():
            states[name].status, states[name].sentence = BLOCKED, f"it depends on {missing}, which is missing"
            self._build.recorder.note("task.blocked", task=name, by=missing)

    def _drained(self) -> bool:
        """With a full history nothing new starts; what waits for a person is carried into the next run."""
        states = self._build.state.tasks
        at_work = [name for name in self._lines if states[name].status != ASKING]
        return self._build.full and not at_work and not self._build.state.book.answers

    def _ended(self) -> bool:
        states = self._build.state.tasks
        return not self._lines and all(s.status in ENDED for s in states.values())

    def _stirred(self) -> bool:
        """Cheap: it is asked at every step of the workflow."""
        paused = self._build.effects.paused
        done = any(line.done() for line in self._lines.values())
        return done or self._dirty or paused != self._was_paused or self._drained()


def _nothing(build: Build) -> Stopped:
    """Why a build without any merged task failed: the first task that was stuck says it."""
    stuck = [(name, state) for name, state in build.state.tasks.items() if state.kind]
    name, state = stuck[0] if stuck else next(iter(build.state.tasks.items()))
    return Stopped(state.kind or "AttemptsExhausted", f"task {name}: {state.sentence}")
