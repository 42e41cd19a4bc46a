"""What benchmarks say, and how they are told to be quick: figures go to stdout, how far it is to stderr."""

from __future__ import annotations

import argparse
import sys
import time

_BEGAN = time.monotonic()


def say(line: str) -> None:
    """A line of the result, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tell(line: str) -> None:
    """A line for who waits, with the minutes and seconds since the program began."""
    minutes, seconds = divmod(int(time.monotonic() - _BEGAN), 60)
    sys.stderr.write(f"  {minutes:2}:{seconds:02}  {line}\n")
    sys.stderr.flush()


def options(description: str, *, quick: str) -> argparse.ArgumentParser:
    """A command line with ``--quick``, of which ``quick`` says what it does."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def is_quick(description: str, *, quick: str) -> bool:
    """Whether ``--quick`` was given, where there is nothing else to ask."""
    return bool(options(description, quick=quick).parse_args().quick)
