"""``python3 -m setup.bootstrap [test]``: all that ``make`` needs, on a bare system Python; twice costs nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping

from setup.console import TOOLS, SetupError, say
from setup.python import check_lock, ensure_python
from setup.server import ensure_server
from setup.system import FOR_BUILDS, FOR_DOWNLOADS, FOR_TESTS, ensure_system


def main(argv: list[str], environment: Mapping[str, str]) -> int:
    """0 when all is there; 1 with one sentence on stderr when it is not."""
    tests = argv[1:] == ["test"]
    try:
        with _one_at_a_time():
            needs = (*FOR_DOWNLOADS, *FOR_BUILDS, *(FOR_TESTS if tests else ()))
            ensure_system(needs, environment, root=os.geteuid() == 0)
            ensure_python(environment)
            if tests:
                check_lock(environment)
            ensure_server(environment)
    except SetupError as error:
        say(str(error))
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
