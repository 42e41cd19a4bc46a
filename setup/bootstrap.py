"""``python3 -m setup.bootstrap [demo|mount|test]``: all that ``make`` needs, on a bare system Python; twice costs
nothing. ``mount`` does without the programs that isolate."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping

from setup.console import TOOLS, SetupError, say
from setup.go import compiler
from setup.programs import ensure_programs
from setup.python import check_lock, ensure_python
from setup.server import ensure_server
from setup.system import BUBBLEWRAP, FOR_BUILDS, FOR_DOWNLOADS, FOR_MOUNT, FOR_TESTS, ensure_system

_WITHOUT = (
    "or play the demo without isolation, which runs what a model writes as you, on this machine: make demo MOUNT=1"
)


def main(argv: list[str], environment: Mapping[str, str]) -> int:
    """0 when all is there; 1 with one sentence on stderr when it is not."""
    tests = argv[1:] == ["test"]
    try:
        with _one_at_a_time():
            builds = FOR_MOUNT if argv[1:] == ["mount"] else FOR_BUILDS
            needs = (*FOR_DOWNLOADS, *builds, *(FOR_TESTS if tests else ()))
            ensure_system(needs, environment, root=os.geteuid() == 0)
            ensure_python(environment)
            if tests:
                check_lock(environment)
            with compiler(environment) as go:
                ensure_server(environment, go)
                if tests:
                    ensure_programs(go)
    except SetupError as error:
        say(str(error))
        if argv[1:] == ["demo"] and not BUBBLEWRAP.present(environment):
            say(_WITHOUT)
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next run goes on from here")
        return 130
    return 0


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this checkout")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
