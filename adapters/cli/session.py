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

from adapters.cli.exits import INTERRUPTED, TIMEOUT, code_of
from adapters.settings import Settings, load_settings
from adapters.settings.secrets import for_people
from domain.errors import InvalidInput, MendworkError


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


def here() -> Path:
    """The folder that the command was typed in. Raises InvalidInput when it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InvalidInput("the current folder was deleted; go to another one") from None


def login() -> str:
    """Who answers and who pays, where nobody else is named."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"uid-{os.getuid()}"


def run(command: Callable[[Settings], Coroutine[Any, Any, int]]) -> None:
    """Read the configuration, run ``command`` with it and exit with its code."""
    run_anywhere(lambda: command(load_settings(start=here(), environment=for_people(os.environ))))


def run_anywhere(command: Callable[[], Coroutine[Any, Any, int]]) -> None:
    """Run ``command``, which needs no configuration that can be read, and exit with its code."""
    try:
        code = asyncio.run(command())
    except MendworkError as error:
        say(f"mendwork: {error}")
        code = code_of(error)
    except KeyboardInterrupt:
        code = INTERRUPTED
    _leave(code)
    raise typer.Exit(code)


async def within(seconds: float, command: Coroutine[Any, Any, int]) -> int:
    """The command's code; TIMEOUT when it has not ended after so many seconds. 0 waits without end."""
    limit = asyncio.timeout(seconds or None)
    try:
        async with limit:
            code = await command
    except TimeoutError:
        if not limit.expired():
            raise
    return TIMEOUT if limit.expired() else code


def _leave(code: int) -> None:
    """End at once where Temporal's client was used: its threads may still be handing over their last answer, and an
    interpreter that shuts down under them aborts with code -6 (seen: one command in four on a busy machine)."""
    if "temporalio.bridge.temporal_sdk_bridge" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
