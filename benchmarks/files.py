"""Repositories of any number of files, made to measure with: the same on every machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_FOLDER = 40
_LINES = 30
_DATE = "@1700000000 +0000"
_ALONE = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "Bench"), ("EMAIL", "bench@localhost"), ("DATE", _DATE))
    },
}


def alone() -> dict[str, str]:
    """An environment in which git reads nobody's configuration."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **_ALONE}


def path_of(number: int) -> str:
    """Where the file ``number`` is: 40 to a folder, folders in folders."""
    folder = number // _FOLDER
    return f"src/part{folder // 10:02}/unit{folder % 10}/module_{number:05}.py"


def content_of(number: int) -> str:
    """About a kilobyte of Python that no other file has."""
    lines = (f"def step_{number}_{line}(value):\n    return value + {number * line}\n" for line in range(_LINES))
    return f'"""Module {number}."""\n\n\n' + "\n\n".join(lines)


def make_repository(folder: Path, files: int) -> Path:
    """A repository with ``files`` files and one commit on main."""
    for number in range(files):
        file = folder / path_of(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content_of(number))
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit_all(folder, "start")
    return folder


def commit_all(folder: Path, message: str) -> str:
    """Commit whatever is in the working tree; the commit's name."""
    git(folder, "add", "--all")
    git(folder, "-c", "gc.auto=0", "commit", "--quiet", f"--message={message}")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    """What git prints. Raises CalledProcessError."""
    argv = ("git", "-C", str(folder), "-c", "safe.directory=*", *arguments)
    return subprocess.run(argv, env=alone(), check=True, capture_output=True, text=True).stdout.strip()
