"""The command line's entry: ``mendwork``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from adapters.cli.app import app

    sys.exit(app(prog_name="mendwork"))


if __name__ == "__main__":
    main()
