"""A worker that is asked to stop finishes what it does; nothing is lost and nothing is made twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.workshop import ANSWERS, DEV, MENDWORK, Workshop, wait_for

SLOW: list[dict[str, Any]] = [
    {**entry, "faults": [{"kind": "slow", "seconds": 2}]} if entry["role"] == "Plan" else entry for entry in ANSWERS
]


def test_sigterm_lets_a_model_call_end_and_the_worker_exits_with_0(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=SLOW)
    with at.running(dev=DEV):
        argv = [*MENDWORK, "build", "spec.md"]
        with subprocess.Popen(argv, cwd=at.root, env=at.environment, stderr=subprocess.PIPE, text=True) as build:
            wait_for(at.billed, why="the first call")
            os.kill(at.pids()["model"], signal.SIGTERM)
            _, said = build.communicate(timeout=90)
        status = at.status("build-calc-1")
    assert build.returncode == 0, said
    assert "worker model ended (exit code 0)" in (at.root / "dev.log").read_text()
    assert max(Counter(line["key"] for line in at.billed()).values()) == 1
    assert status["calls_unknown"] == 0
