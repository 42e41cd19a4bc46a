"""What every command needs: the settings, and errors as one sentence with the right exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import typer

from adapters.cli.exits import INTERRUPTED, OWN_FAILURE, exit_code
from adapters.settings import Settings, load_settings
from domain.errors import MendworkError, Transient


def say(text: str) -> None:
    """A line for people, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def put(text: str) -> None:
    """Data, on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


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
    raise typer.Exit(code)
