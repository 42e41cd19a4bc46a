"""What happens in the demo, act by act."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from stage import finale
from stage.checks import Promise, bill_promises, report, repository_promises, suite_promises
from stage.engine import WORKERS, Build, Engine
from stage.narrator import Narrator
from stage.person import BY, Decision, decide, decision_promises, undone_promises
from stage.processes import Program, StageFailure
from stage.production import Production
from stage.sabotage import Sabotage
from stage.scene import EXAMPLE, Scene, git, make_repository, stage_environment, write_config
from stage.story import Story, story_promises

LOOK_EVERY_SECONDS = 0.3
SCRIPTED_SECONDS = 400.0
REAL_SECONDS = 7_200.0
NOTE = "Milk, from the second release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """``model`` "" plays the script; ``ask`` whoever sits at the terminal; ``watch`` releases for so many seconds.
    ``mounted``: without isolation, and so without production."""

    model: str
    ask: bool
    watch: float
    mounted: bool = False


class Demo:
    """One performance."""

    def __init__(self, scene: Scene, narrator: Narrator, wishes: Wishes) -> None:
        self._scene = scene
        self._narrator = narrator
        self._wishes = wishes
        self._programs = contextlib.ExitStack()
        self._server: Program | None = None
        self._base_url = ""
        self._missing: list[str] = []
        self._production: Production | None = None

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.close()
        finally:
            self._narrator.chapter("Everything that was started is stopped")
            self._programs.close()

    def close(self) -> bool:
        """End production, which nobody else would. Returns whether that went as promised."""
        if self._production is None or self._production.closed:
            return True
        self._narrator.chapter("Production outlives Mendwork, so the demo stops what it put there")
        return report(self._narrator, self._production.close())

    def play(self, environment: Mapping[str, str]) -> bool:
        """Everything from the empty folder to the release that was taken back. Returns whether all was as promised."""
        base = self._set_the_scene()
        engine = Engine(
            scene=self._scene,
            environment=stage_environment(self._scene, environment, scripted=not self._wishes.model),
            narrator=self._narrator,
            workers=WORKERS - 1 if self._wishes.mounted else WORKERS,
        )
        self._narrator.chapter("Mendwork starts: Temporal's development server and one worker per secret class")
        self._narrator.command("mendwork dev")
        engine.wait_until_ready(self._keep(engine.serve()))
        if self._wishes.mounted:
            return self._mounted(engine, base)
        self._production = Production(engine)
        self._open(engine, self._production)
        sabotage = Sabotage(engine)
        build, decisions = self._build(engine, self._production, "spec.md", sabotage)
        if any(not decision.yes for decision in decisions):
            return self._refused(engine, build, base, decisions[-1])
        kept = self._show(engine, build, sabotage, base, decisions)
        if self._wishes.model:
            self._narrator.tell("No model writes the second, bad change on demand: without --model you see it caught.")
            return kept
        return self._second_act(engine, self._production, build) and kept

    def _mounted(self, engine: Engine, base: str) -> bool:
        """One act: what a model wrote is not isolated, so it gets no users."""
        self._narrator.tell("Nothing isolates here: what the model writes runs as you, and may reach the network.")
        self._missing = ["--allow-missing", "network"]
        sabotage = Sabotage(engine)
        build, decisions = self._build(engine, None, "spec.md", sabotage)
        if any(not decision.yes for decision in decisions):
            return self._refused(engine, build, base, decisions[-1])
        return self._show(engine, build, sabotage, base, decisions)

    def _set_the_scene(self) -> str:
        self._narrator.chapter("A small notes service in a git repository")
        base = make_repository(self._scene)
        self._narrator.tell(f"{self._scene.repository}, first commit {base[:12]}")
        if self._wishes.model:
            self._narrator.tell(f"The model is {self._wishes.model}: what it costs is real money.")
        else:
            self._serve_script("answers.yaml")
            self._narrator.tell(f"Two models that answer from a script, one writes, one reviews: {self._base_url}")
        watch = None if self._wishes.mounted else self._wishes.watch
        write_config(self._scene, model=self._wishes.model, base_url=self._base_url, watch=watch)
        return base

    def _serve_script(self, answers: str) -> None:
        """The scripted models, with these answers from now on, where they were before."""
        if self._server is not None:
            self._server.stop()
        port = str(urlsplit(self._base_url).port or 0)
        module = [sys.executable, "-m", "adapters.models.scripted"]
        options = ["--answers", str(EXAMPLE / answers), "--bill", str(self._scene.bill_of(answers)), "--port", port]
        log = self._scene.logs / f"scripted-{answers}.log"
        self._server = self._keep(Program([*module, *options], environment=os.environ, log=log))
        try:
            self._base_url = str(json.loads(self._server.first_line())["base_url"])
        except (ValueError, KeyError) as error:
            raise StageFailure(f"the scripted model server does not start: {self._server.said()}") from error

    def _open(self, engine: Engine, production: Production) -> None:
        """The service as it is goes to production. Its watch goes on beside what comes next."""
        self._narrator.chapter("Production: the service as it is today is delivered, and gets users")
        first = self._first(engine)
        try:
            production.open(first)
        except StageFailure:
            if not first.needs_less_isolation():
                raise
            self._allow_missing()
            production.open(self._first(engine))

    def _first(self, engine: Engine) -> Build:
        command = ("deliver", "main", "--project", "notes", "--approve", "release", "--by", BY)
        first = engine.start(*command, *self._missing, who="first")
        self._keep(first.program)
        return first

    def _allow_missing(self) -> None:
        self._narrator.tell("This machine lets nobody limit memory and processes, and Mendwork is never silently")
        self._narrator.tell("weaker: it refuses, until one says that it may do without.")
        self._missing = ["--allow-missing", "memory,pids"]

    def _build(
        self, engine: Engine, production: Production | None, spec: str, sabotage: Sabotage | None
    ) -> tuple[Build, list[Decision]]:
        """A specification, built and delivered; whoever is asked decides."""
        title = (EXAMPLE / spec).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        self._narrator.chapter(f"A feature is built: {title}")
        command = ("build", os.path.relpath(EXAMPLE / spec, Path.cwd()))

        def start() -> Build:
            return engine.start(*command, *self._missing, on_window=lambda name: self._draw(engine, name))

        build = self._follow(start(), production, sabotage)
        if build.needs_less_isolation() and not self._missing:
            self._allow_missing()
            build = self._follow(start(), production, sabotage)
        decisions: list[Decision] = []
        while build.waits:
            answered = [each.digest for each in decisions]
            decision = decide(engine, build.name, ask=self._wishes.ask, answered=answered)
            decisions += [decision] if decision is not None else []
            build.program.result()
            build.follow_again()
            self._follow(build, production, sabotage)
        return build, decisions

    def _follow(self, build: Build, production: Production | None, sabotage: Sabotage | None) -> Build:
        self._keep(build.program)
        patience = REAL_SECONDS if self._wishes.model else SCRIPTED_SECONDS
        until = time.monotonic() + patience
        while not build.over:
            if time.monotonic() > until:
                raise StageFailure(f"the build is not over after {patience:.0f} s; the logs: {self._scene.logs}")
            if sabotage is not None:
                sabotage.look(build.name)
            if production is not None:
                self._narrator.status(production.line())
            time.sleep(LOOK_EVERY_SECONDS)
        return build

    def _draw(self, engine: Engine, name: str) -> None:
        """The figures of the watch, as they are measured, and what its users see."""
        with contextlib.suppress(StageFailure):
            self._narrator.picture(Story.of(engine.run("trace", name, "--jsonl")).series())
        if self._production is not None and not self._narrator.interactive:
            self._narrator.tell(self._production.line())

    def _refused(self, engine: Engine, build: Build, base: str, decision: Decision) -> bool:
        build.program.result()
        if decision.about == "release" and self._production is not None:
            return report(self._narrator, self._production.untouched_promises(1))
        return report(self._narrator, undone_promises(engine, base))

    def _show(self, engine: Engine, build: Build, sabotage: Sabotage, base: str, decisions: list[Decision]) -> bool:
        code, output = build.program.result()
        status = engine.status(build.name)
        if code != 0:
            raise StageFailure(f"the build ended with exit code {code}: {status.get('sentence', '')}")
        branch = f"mendwork/{build.name}"
        story = Story.of(engine.run("trace", build.name, "--jsonl"))
        self._narrator.chapter("What went wrong on the way, and was recovered from")
        recovered = finale.show_troubles(engine, build.name, story)
        self._narrator.tell(f"pid {sabotage.killed}, the model worker: killed; pid {sabotage.successor} took over")
        self._narrator.chapter("What was promised, checked from outside")
        promises = [
            Promise(sentence="stdout held the build's name and nothing else", holds=output.strip() == build.name),
            Promise(sentence="a worker was killed once and replaced", holds=sabotage.successor != 0),
            *(p for d in decisions if d.about == "change" for p in decision_promises(engine, story, d, branch=branch)),
            *self._promises(branch, base, [task["task"] for task in status["tasks"]], recovered),
            *([] if self._wishes.model else story_promises(story)),
        ]
        kept = report(self._narrator, [*promises, *self._delivered(2, decisions)])
        self._narrator.chapter("What it cost")
        finale.show_cost(engine, status, scripted=not self._wishes.model)
        self._narrator.chapter("Where to look")
        finale.show_where(engine, build.name, branch)
        return kept

    def _delivered(self, number: int, decisions: list[Decision]) -> list[Promise]:
        if self._production is None or not decisions:
            return []
        return self._production.promoted_promises(number, decisions[-1])

    def _promises(self, branch: str, base: str, tasks: list[str], recovered: int) -> list[Promise]:
        promises = repository_promises(self._scene, branch=branch, base=base, tasks=tasks)
        promises += suite_promises(self._scene, branch=branch)
        if self._wishes.model:
            return promises
        promises.append(Promise(sentence="three tasks, six troubles mended", holds=(len(tasks), recovered) == (3, 6)))
        return promises + bill_promises(self._scene.bill)

    def _second_act(self, engine: Engine, production: Production, first: Build) -> bool:
        """A change that is green everywhere, and bad in production."""
        self._narrator.chapter("The person takes the feature into main, and users go on")
        branch = f"mendwork/{first.name}"
        self._narrator.command(f"git merge --ff-only {branch}")
        git(self._scene, "merge", "--quiet", "--ff-only", branch)
        production.note(NOTE)
        self._serve_script("busy.yaml")
        self._narrator.tell("The next change has a bug that neither its tests nor its reviewer find.")
        build, decisions = self._build(engine, production, "busy.md", None)
        if any(not decision.yes for decision in decisions) or not decisions:
            return report(self._narrator, production.untouched_promises(2))
        build.program.result()
        self._narrator.chapter("Release 3, taken back while nobody did anything")
        finale.show_release(engine, 3)
        self._narrator.chapter("What was promised about it, checked from outside")
        promises = production.rolled_back_promises(3, 2, decisions[-1], title=NOTE)
        promises += [*production.freeze_promises(), production.reach_promise()]
        kept = report(self._narrator, promises)
        self._narrator.chapter("Where to look at releases")
        finale.show_releases(engine, 3)
        return kept

    def _keep(self, program: Program) -> Program:
        self._programs.callback(program.stop)
        return program
