"""The one thing that goes wrong on purpose outside the script: a worker is killed while a model call is in flight."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from .engine import Engine

WORKER = "model"


class Sabotage:
    """Kills the model worker with SIGKILL, once, while the first task waits for the model."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.killed = 0
        self.successor = 0
        self._at = 0.0

    def look(self, build: str) -> None:
        """Look whether it is time to kill, or whether another worker has taken over since."""
        if self.killed and not self.successor:
            self._look_for_successor()
        elif not self.killed and build and self._call_in_flight(self._engine.status(build)):
            self._kill()

    def _call_in_flight(self, status: dict[str, Any]) -> bool:
        tasks = status.get("tasks", [])
        waiting = any(task["status"] == "running" and task.get("phase") == "writing" for task in tasks)
        return waiting and status.get("calls_running", 0) > 0

    def _kill(self) -> None:
        pid = self._engine.running().get("workers", {}).get(WORKER)
        if pid is None:
            return
        self._engine.narrator.drama(f"kill -9 {pid}: the model worker dies while the model is answering")
        os.kill(pid, signal.SIGKILL)
        self.killed, self._at = pid, time.monotonic()

    def _look_for_successor(self) -> None:
        pid = self._engine.running().get("workers", {}).get(WORKER)
        if pid not in (None, self.killed):
            self.successor = pid
            after = time.monotonic() - self._at
            self._engine.narrator.good(
                f"another model worker, pid {pid}, is there after {after:.1f} s; the build goes on"
            )
