"""What every command needs: the settings, and errors as one sentence with the right exit code."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import typer

from adapters.cli.exits import INTERRUPTED, OWN_FAILURE, exit_code
from adapters.settings import Settings, load_settings
from domain.errors import InvalidInput, MendworkError, Transient


def say(text: str) -> None:
    """A line for people, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def put(text: str) -> None:
    """Data, on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def read_text(file: str, *, what: str) -> str:
    """The text of a file, or of standard input for "-". Raises InvalidInput that names ``what`` it should have been."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"the {what} {file} cannot be read: {reason}") from error


def login() -> str:
    """Who answers and who pays, where nobody else is named."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"uid-{os.getuid()}"


def run(command: Callable[[Settings], Coroutine[Any, Any, int]]) -> None:
    """Read the configuration, run ``command`` with it and exit with its code."""
    try:
        settings = load_settings(start=Path.cwd(), environment=os.environ)
        code = asyncio.run(command(settings))
    except MendworkError as error:
        say(f"mendwork: {error}")
        code = OWN_FAILURE if isinstance(error, Transient) else exit_code("failed", type(error).__name__)
    except KeyboardInterrupt:
        code = INTERRUPTED
    _leave(code)
    raise typer.Exit(code)


def _leave(code: int) -> None:
    """End at once where Temporal's client was used: its threads may still be handing over their last answer, and an
    interpreter that shuts down under them aborts with code -6 (seen: one command in four on a busy machine)."""
    if "temporalio.bridge.temporal_sdk_bridge" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
