"""What a check finds, and what it may look at."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from adapters.settings import Settings

State = Literal["ok", "missing", "broken"]
T = TypeVar("T")

HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where git and the sandbox's programs are looked up, whoever starts Mendwork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. ``purpose`` is what it is for, ``cure`` the one command, "" where there is none."""

    name: str
    state: State
    purpose: str
    detail: str
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """``settings`` are the defaults where there is no file, and None where the file cannot be used."""

    start: Path
    environment: Mapping[str, str] = field(repr=False)
    settings: Settings | None = None

    @property
    def state(self) -> Path:
        """The folder that Mendwork writes to."""
        return self.settings.state if self.settings else self.start / ".mendwork"

    @property
    def path(self) -> str:
        """Where the programs of this shell are."""
        return self.environment.get("PATH", os.defpath)


def cure_in(sentence: str) -> str:
    """The command at the end of one of our sentences: what follows its last colon."""
    _, colon, command = sentence.rpartition(": ")
    return command if colon else ""


async def aside(work: Callable[[], T]) -> T:
    """What ``work`` returns, from a thread that holds up neither the other checks nor the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]  # T may include None
        else:
            done.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # it is raised where it is waited for
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await done
