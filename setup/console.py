"""Speaking to the person who runs the set-up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
TOOLS = CHECKOUT / ".tools"


class SetupError(Exception):
    """What is wrong and the one command that mends it, in a sentence."""


def say(line: str) -> None:
    """A line on stderr."""
    sys.stderr.write(f"set-up: {line}\n")
    sys.stderr.flush()


def run(argv: Sequence[str | Path], *, environment: Mapping[str, str], failure: str, folder: Path = CHECKOUT) -> None:
    """Run quietly in ``folder``. Raises SetupError: ``failure`` and the end of what the program said."""
    try:
        done = subprocess.run(
            argv, env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as error:
        raise SetupError(f"{failure}: {error}") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise SetupError(f"{failure} ({argv[0]} ended with {done.returncode}):\n{said}")
