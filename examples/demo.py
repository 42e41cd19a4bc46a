"""The demo: ``python examples/demo.py [--yes] [--model provider/name] [--keep]``, or ``make demo``.

A real small service gets a real feature. A model plans and writes it, two tasks at a time, with mistakes; tests in a
sandbox, a conflict and another model's review catch them; one of Mendwork's own workers is killed on the way; a person is
asked; and a branch is there in the end, checked from outside. Exit code 0 when everything was as promised, 1 when not,
130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from stage import finale
from stage.checks import Promise, bill_promises, report, repository_promises, suite_promises
from stage.engine import Build, Engine
from stage.narrator import Narrator
from stage.person import Decision, decide, decision_promises, undone_promises
from stage.processes import Program, StageFailure
from stage.sabotage import Sabotage
from stage.scene import EXAMPLE, PROJECT, Scene, fresh_scene, make_repository, stage_environment, write_config
from stage.story import Story, story_promises

LOOK_EVERY_SECONDS = 0.3
SCRIPTED_SECONDS = 300.0
REAL_SECONDS = 7_200.0


class Dismissed(KeyboardInterrupt):
    """SIGTERM: handled like Ctrl-C, and told."""


class Demo:
    """One performance."""

    def __init__(self, scene: Scene, narrator: Narrator, *, model: str, ask: bool) -> None:
        self._scene = scene
        self._narrator = narrator
        self._model = model
        self._ask = ask
        self._programs = contextlib.ExitStack()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._narrator.chapter("Everything that was started is stopped")
        finally:
            self._programs.close()

    def play(self, environment: Mapping[str, str]) -> bool:
        """Everything from the empty folder to the checked branch. Returns whether all was as promised."""
        base = self._set_the_scene()
        engine = Engine(
            scene=self._scene,
            environment=stage_environment(self._scene, environment, scripted=not self._model),
            narrator=self._narrator,
        )
        self._narrator.chapter("Mendwork starts: Temporal's development server and one worker per secret class")
        self._narrator.command("mendwork dev")
        engine.wait_until_ready(self._keep(engine.serve()))
        build, sabotage = self._build(engine)
        decision = self._decide(engine, build, sabotage)
        if decision is None or decision.yes:
            return self._show(engine, build, sabotage, base, decision)
        build.program.result()
        return report(self._narrator, undone_promises(engine, base))

    def _set_the_scene(self) -> str:
        self._narrator.chapter("A small notes service in a git repository")
        base = make_repository(self._scene)
        self._narrator.tell(f"{self._scene.repository}, first commit {base[:12]}")
        if self._model:
            self._narrator.tell(f"The model is {self._model}: what it costs is real money.")
            write_config(self._scene, model=self._model, base_url="")
        else:
            write_config(self._scene, model="", base_url=self._start_scripted_server())
        return base

    def _start_scripted_server(self) -> str:
        module = [sys.executable, "-m", "adapters.models.scripted"]
        answers = ["--answers", str(EXAMPLE / "answers.yaml"), "--bill", str(self._scene.bill), "--port", "0"]
        log = self._scene.logs / "scripted.log"
        server = self._keep(Program([*module, *answers], environment=os.environ, log=log))
        try:
            base_url = str(json.loads(server.first_line())["base_url"])
        except (ValueError, KeyError) as error:
            raise StageFailure(f"the scripted model server does not start: {server.said()}") from error
        self._narrator.tell(f"Two models that answer from a script, one writes and one reviews: {base_url}")
        return base_url

    def _build(self, engine: Engine) -> tuple[Build, Sabotage]:
        self._narrator.chapter("A feature is built: tags on notes")
        sabotage = Sabotage(engine)
        build = self._follow(engine.start_build(), sabotage)
        if build.needs_less_isolation():
            self._narrator.tell("This machine lets nobody limit memory and processes, and Mendwork is never silently")
            self._narrator.tell("weaker: it refuses, until one says that it may do without.")
            build = self._follow(engine.start_build(allow_missing="memory,pids"), sabotage)
        return build, sabotage

    def _decide(self, engine: Engine, build: Build, sabotage: Sabotage) -> Decision | None:
        """The approval of the change; None when the build ended without asking."""
        if not build.waits:
            return None
        self._narrator.chapter("A person is asked: is this the change that was wanted?")
        decision = decide(engine, build.name, ask=self._ask)
        build.program.result()
        build.follow_again()
        self._follow(build, sabotage)
        return decision

    def _follow(self, build: Build, sabotage: Sabotage) -> Build:
        self._keep(build.program)
        patience = REAL_SECONDS if self._model else SCRIPTED_SECONDS
        until = time.monotonic() + patience
        while not build.over:
            if time.monotonic() > until:
                raise StageFailure(f"the build is not over after {patience:.0f} s; the logs: {self._scene.logs}")
            sabotage.look(build.name)
            time.sleep(LOOK_EVERY_SECONDS)
        return build

    def _show(self, engine: Engine, build: Build, sabotage: Sabotage, base: str, decision: Decision | None) -> bool:
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
            *(decision_promises(engine, story, decision, branch=branch) if decision else []),
            *self._promises(branch, base, [task["task"] for task in status["tasks"]], recovered),
            *([] if self._model else story_promises(story)),
        ]
        kept = report(self._narrator, promises)
        self._narrator.chapter("What it cost")
        finale.show_cost(engine, status, scripted=not self._model)
        self._narrator.chapter("Where to look")
        finale.show_where(engine, build.name, branch)
        return kept

    def _promises(self, branch: str, base: str, tasks: list[str], recovered: int) -> list[Promise]:
        promises = repository_promises(self._scene, branch=branch, base=base, tasks=tasks)
        promises += suite_promises(self._scene, branch=branch)
        if self._model:
            return promises
        promises.append(Promise(sentence="three tasks, six troubles mended", holds=(len(tasks), recovered) == (3, 6)))
        return promises + bill_promises(self._scene.bill)

    def _keep(self, program: Program) -> Program:
        self._programs.callback(program.stop)
        return program


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--yes", action="store_true", help="ask nothing: end as soon as all is shown")
    parser.add_argument(
        "--model", default="", metavar="PROVIDER/NAME", help="a real model, its key from the environment"
    )
    parser.add_argument("--keep", action="store_true", help="leave the last demo's folder, play in another")
    chosen = parser.parse_args(arguments)
    narrator = Narrator()
    folder = _folder(keep=chosen.keep)
    signal.signal(signal.SIGTERM, _dismiss)
    try:
        asking = narrator.interactive and not chosen.yes
        with (
            fresh_scene(folder, tell=narrator.tell) as scene,
            Demo(scene, narrator, model=chosen.model, ask=asking) as demo,
        ):
            kept = demo.play(os.environ)
            if asking:
                narrator.ask("Look around, then press Enter: everything is stopped.")
    except StageFailure as error:
        narrator.bad(str(error))
        return 1
    except Dismissed:
        narrator.bad("stopped by SIGTERM: another demo begins here, or somebody wants this one to end")
        return 143
    except KeyboardInterrupt:
        return 130
    return 0 if kept else 1


def _dismiss(*_: object) -> None:
    raise Dismissed


def _folder(*, keep: bool) -> Path:
    """The demo's folder, which stays until the next demo; with ``keep`` the first one that is not there yet."""
    names = (f".mendwork-demo-{number}" if number else ".mendwork-demo" for number in itertools.count())
    return next(PROJECT / name for name in names if not (keep and (PROJECT / name).exists()))


if __name__ == "__main__":
    sys.exit(main())
