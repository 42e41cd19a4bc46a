"""The few tests that failed among others, once more and alone.

`make test` runs three processes on a machine of two cores, each with servers of its own. A test that fails there and
passes alone depends on the clock or on a neighbour: it is named as flaky, to be mended, and the change that it was run
for is not blamed. More than ``MOST`` failures, or anything but failed tests, are not asked again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 5
FAILED = 1  # pytest's exit code for "tests were run, and some failed"
_LAST = Path(".pytest_cache/v/cache/lastfailed")


def main(code: int) -> int:
    """The exit code of it all, from that of the run before."""
    failed = sorted(json.loads(_LAST.read_text())) if code == FAILED and _LAST.exists() else []
    if not 0 < len(failed) <= MOST:
        return code
    _say(f"once more, alone: {len(failed)} that failed")
    alone = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *failed], check=False).returncode
    if alone == 0:
        _say("\n  ".join(["FLAKY: failed among others, passed alone:", *failed]))
    return alone


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
