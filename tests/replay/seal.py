"""Makes the running version a release: ``python -m tests.replay.seal``. Its recorded histories never change again."""

from __future__ import annotations

import sys

from tests.replay.shelf import SHELF, Released, running_version


def main() -> None:
    """Write the digests of its histories."""
    version = running_version()
    try:
        count = SHELF.seal(version)
    except Released as error:
        sys.exit(str(error))
    sys.stderr.write(f"{version} is released with {count} histories; commit them, and {SHELF.sums.name}\n")


if __name__ == "__main__":
    main()
