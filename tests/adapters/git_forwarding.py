"""A forward or a fetch in a process of its own: tells what came of it, or dies at a git that it is told."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from adapters.git.adapter import open_git
from domain.build.project import Project
from domain.errors import MendworkError


async def forward(state: str, repository: str, old: str, new: str) -> str:
    """ "moved", or the name of the error."""
    project = Project(name="shop", repository=repository, branch="main", test=("true",))
    try:
        await open_git(Path(state)).landing.forward(project, old=old, new=new)
    except MendworkError as error:
        return type(error).__name__
    return "moved"


def forward_beside(sender: Any, barrier: Any, *arguments: str) -> None:
    """As soon as the other party is there; sends what came of it."""
    barrier.wait()
    sender.send(asyncio.run(forward(*arguments)))


def forward_to_its_death(sender: Any, number: int, how: str, *arguments: str) -> None:
    """Sends what came of it where there are fewer gits than ``number``."""
    die_at(number, how)
    sender.send(asyncio.run(forward(*arguments)))


def fetch_to_its_death(sender: Any, number: int, how: str, state: str, repository: str, build: str) -> None:
    """As ``forward_to_its_death``; sends the base."""
    die_at(number, how)
    project = Project(name="shop", repository=repository, branch="main", test=("true",))
    sender.send(asyncio.run(open_git(Path(state)).mirrors.fetch_base(project, build=build)))


def die_at(number: int, how: str) -> None:
    """Be killed at the ``number``-th git: "before" it starts, "during" it (it lives on) or "together" with it."""
    seen = 0

    def watch(event: str, _: object) -> None:
        nonlocal seen
        if event == "subprocess.Popen":
            seen += 1
            if seen == number and how == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            elif seen == number:
                threading.Thread(target=die_after_start, args=(how,), daemon=True).start()

    sys.addaudithook(watch)


def die_after_start(how: str) -> None:
    main = os.getpid()
    while not (started := Path(f"/proc/{main}/task/{main}/children").read_text().split()):
        pass
    for child in started if how == "together" else ():
        with contextlib.suppress(ProcessLookupError):  # it was faster
            os.kill(int(child), signal.SIGKILL)
    os.kill(main, signal.SIGKILL)
