"""Mendwork as the demo drives it: by its command line."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .narrator import Narrator
from .processes import Program, StageFailure, run
from .scene import MENDWORK, Scene

READY_SECONDS = 60.0
WORKERS = 5
WAITING = 7
STARTED = " started: "
NO_WORKER = "no worker answers"
WINDOW = re.compile(r"\s*window \d+ ")
OnWindow = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The command line, with the demo's configuration."""

    scene: Scene
    environment: Mapping[str, str]
    narrator: Narrator
    workers: int = WORKERS

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
            if len(state.get("workers", {})) >= self.workers:
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

    def start(self, *command: str, who: str = "build", on_window: OnWindow | None = None) -> Build:
        """A command that starts a saga and follows it, once a worker polls; its lines are told as they come, but those
        of a watch's windows go to ``on_window`` where it is given. Raises StageFailure."""
        self.narrator.command(" ".join(["mendwork", *command]))
        until = time.monotonic() + READY_SECONDS
        while True:
            build = Build(self, command, who=who, on_window=on_window)
            build.wait_for_start()
            if build.name:
                return build
            build.program.stop()
            if NO_WORKER not in build.program.said() or time.monotonic() > until:
                raise StageFailure(f"`mendwork {command[0]}` does not start: {build.program.said()}")
            time.sleep(0.2)


class Build:
    """A build, or a delivery, that is followed. ``name`` is empty until it has started."""

    def __init__(
        self, engine: Engine, command: Sequence[str], *, who: str = "build", on_window: OnWindow | None = None
    ) -> None:
        self._engine = engine
        self._who = who
        self._on_window = on_window
        self._told: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self.name = ""
        self.program = self._follow(*command)

    @property
    def waits(self) -> bool:
        """Whether it waits for a person, and nobody could be asked."""
        return self.program.code == WAITING

    def follow_again(self) -> None:
        """With ``mendwork watch``, which begins at the beginning: only what is new is told."""
        self._again = self._told.copy()
        self.program = self._follow("watch", self.name, "--no-wait")

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
        return self.program.code not in (None, 0, WAITING) and "--allow-missing" in self.program.said()

    def has_told(self, words: str) -> bool:
        """Whether one of its lines holds these words."""
        return any(words in line for line in tuple(self._told))

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
            if self._on_window is not None and WINDOW.match(line):
                self._on_window(self.name)
            else:
                self._engine.narrator.quote(self._who, line)
