"""Mendwork as the demo drives it: by its command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .narrator import Narrator
from .processes import Program, StageFailure, run
from .scene import EXAMPLE, PROJECT, Scene

MENDWORK = str(Path(sys.executable).parent / "mendwork")
SPEC = EXAMPLE / "spec.md"
READY_SECONDS = 60.0
WORKERS = 4
REFUSED = 3
WAITING = 7
STARTED = " started: "
NO_WORKER = "no worker answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The command line, with the demo's configuration."""

    scene: Scene
    environment: Mapping[str, str]
    narrator: Narrator

    def serve(self) -> Program:
        """Start ``mendwork dev``."""
        return Program(
            [MENDWORK, "dev"],
            environment=self.environment,
            log=self.scene.logs / "dev.log",
            hear=lambda line: self.narrator.quote("dev  ", line),
        )

    def wait_until_ready(self, dev: Program) -> dict[str, Any]:
        """What runs, once every worker does. Raises StageFailure."""
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            state = self.running()
            if len(state.get("workers", {})) >= WORKERS:
                return state
            if dev.code is not None:
                raise StageFailure(f"`mendwork dev` ended with {dev.code}: {dev.said()}")
            time.sleep(0.1)
        raise StageFailure(f"`mendwork dev` was not ready within {READY_SECONDS:.0f} s; its log: {dev.log}")

    def running(self) -> dict[str, Any]:
        """What ``mendwork dev`` says it runs; empty before it does."""
        try:
            state: dict[str, Any] = json.loads(self.scene.dev_state.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return state

    def status(self, build: str) -> dict[str, Any]:
        """``mendwork status BUILD --json``; empty while the store does not know the build."""
        try:
            answer: dict[str, Any] = json.loads(self.run("status", build, "--json"))
        except StageFailure:
            return {}
        return answer

    def run(self, *arguments: str) -> str:
        """The standard output of a command. Raises StageFailure."""
        return run([MENDWORK, *arguments], environment=self.environment)

    def converse(self, *arguments: str) -> int:
        """A command that talks to whoever sits at this terminal. Returns its exit code."""
        return subprocess.run([MENDWORK, *arguments], env=dict(self.environment), check=False).returncode

    def start_build(self, *, allow_missing: str = "") -> Build:
        """``mendwork build spec.md``, once a worker polls; its lines are told as they come. Raises StageFailure."""
        options = ["--allow-missing", allow_missing] if allow_missing else []
        self.narrator.command(" ".join(["mendwork", "build", str(SPEC.relative_to(PROJECT)), *options]))
        until = time.monotonic() + READY_SECONDS
        while True:
            build = Build(self, options)
            build.wait_for_start()
            if build.name:
                return build
            build.program.stop()
            if NO_WORKER not in build.program.said() or time.monotonic() > until:
                raise StageFailure(f"the build does not start: {build.program.said()}")
            time.sleep(0.2)


class Build:
    """A build that is followed. ``name`` is empty until it has started."""

    def __init__(self, engine: Engine, options: Sequence[str]) -> None:
        self._engine = engine
        self._told: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self.name = ""
        self.program = self._follow("build", str(SPEC), *options)

    @property
    def waits(self) -> bool:
        """Whether it waits for a person, and nobody could be asked."""
        return self.program.code == WAITING

    def follow_again(self) -> None:
        """With ``mendwork watch``, which begins at the beginning: only what is new is told."""
        self._again = self._told.copy()
        self.program = self._follow("watch", self.name)

    @property
    def over(self) -> bool:
        """Whether the command has ended."""
        return self.program.code is not None

    def wait_for_start(self) -> None:
        """Return when the build has started, or the command has ended without that."""
        while not self.name and not self.over:
            time.sleep(0.02)
        if self.over:
            self.program.said()

    def needs_less_isolation(self) -> bool:
        """Whether it was refused because this machine cannot limit memory or processes."""
        return self.program.code == REFUSED and "--allow-missing" in self.program.said()

    def _follow(self, *command: str) -> Program:
        return Program(
            [MENDWORK, *command],
            environment=self._engine.environment,
            log=self._engine.scene.logs / f"build-{time.monotonic_ns()}.log",
            hear=self._hear,
        )

    def _hear(self, line: str) -> None:
        if not self.name and STARTED in line:
            self.name = line.split(STARTED)[0].strip()
        if self._again[line]:
            self._again[line] -= 1
        elif self.name:
            self._told[line] += 1
            self._engine.narrator.quote("build", line)
