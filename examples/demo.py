"""The demo: ``python examples/demo.py [--yes] [--model provider/name] [--watch SECONDS] [--keep]
[--sandbox mount]``, or ``make demo``.

A real small service with users gets a real feature. A model plans and writes it, two tasks at a time, with mistakes;
tests in a sandbox, a conflict and another model's review catch them; one of Mendwork's own workers is killed on the
way; a person is asked; and the feature goes to production without its users noticing. The next change is green and
bad: its watch takes it back. All of it is checked from outside.

``--sandbox mount`` is for machines without bubblewrap: what a model writes is not isolated then, and the feature is
landed, not delivered. Exit code 0 when everything was as promised, 1 when not,
130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import signal
import sys
from pathlib import Path

from performance import Demo, Wishes
from stage.narrator import Narrator
from stage.processes import StageFailure
from stage.scene import PROJECT, WATCH_SECONDS, fresh_scene

NO_BUBBLEWRAP = (
    "what a model writes runs in bubblewrap, which this machine does not have: install it, or play without isolation "
    "by --sandbox mount (make demo MOUNT=1)"
)


class Dismissed(KeyboardInterrupt):
    """SIGTERM: handled like Ctrl-C, and told."""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--yes", action="store_true", help="ask nothing: end as soon as all is shown")
    parser.add_argument(
        "--model", default="", metavar="PROVIDER/NAME", help="a real model, its key from the environment"
    )
    parser.add_argument("--keep", action="store_true", help="leave the last demo's folder, play in another")
    parser.add_argument(
        "--watch",
        type=float,
        default=WATCH_SECONDS,
        metavar="SECONDS",
        help="how long a release is watched; at least 4",
    )
    parser.add_argument(
        "--sandbox",
        choices=("bubblewrap", "mount"),
        default="bubblewrap",
        help="mount isolates nothing, and is for machines without bubblewrap",
    )
    chosen = parser.parse_args(arguments)
    narrator = Narrator()
    if chosen.sandbox == "bubblewrap" and not shutil.which("bwrap"):
        narrator.bad(NO_BUBBLEWRAP)
        return 1
    wishes = {"watch": max(chosen.watch, 4.0), "mounted": chosen.sandbox == "mount"}
    folder = _folder(keep=chosen.keep)
    signal.signal(signal.SIGTERM, _dismiss)
    try:
        asking = narrator.interactive and not chosen.yes
        with (
            fresh_scene(folder, tell=narrator.tell) as scene,
            Demo(scene, narrator, Wishes(model=chosen.model, ask=asking, **wishes)) as demo,
        ):
            kept = demo.play(os.environ)
            if asking:
                narrator.ask("Look around, then press Enter: everything is stopped.")
            kept = demo.close() and kept
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
