"""Workers without their start: each is forked from one process that has imported what it needs already.

`mendwork dev` starts a worker as a process that it gives an environment, a folder and a log, signals, and waits for.
Here that process is a few lines (``launch``), which ask the nest of this process of tests for a fork and stand for it:
what it is given is handed over, what ends it ends the fork, and how the fork ends is how it ends. The four seconds of
processor time that a set of workers needs to import the same modules are paid once. That workers start by themselves
is shown where ``DEV`` is said (and measured by ``benchmarks.start``).
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.forks import nest

LAUNCH = Path(__file__).with_name("launch.py")


def grafted(kind: str = "worker") -> tuple[str, ...]:
    """`mendwork dev` with workers that are forked; ``kind`` is "worker", or "mortal" for those of ``tests.chaos``."""
    return (sys.executable, "-P", "-m", "tests.grafting.dev", nest("tests.grafting.nest"), kind)
