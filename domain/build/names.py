"""Names that become git refs, folders, workflow ids and header values."""

from __future__ import annotations

import re

from domain.errors import InvalidName

_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FIRST = ("build", "deliver")
"""What the names that we give begin with: a project may be called task-x, and theirs are no ids of tasks."""
_TASK = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_PROJECT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def check_build_name(name: str) -> str:
    """Return ``name`` if it can be a git ref, a folder and a workflow id. Raises InvalidName with what is wrong."""
    if not _BUILD.fullmatch(name):
        raise InvalidName(
            f"build name {name[:80]!r} cannot be a branch and a folder: letters, digits, '.', '_' and '-', "
            "starting with a letter or digit, at most 100"
        )
    if ".." in name or name.endswith((".lock", ".")):
        raise InvalidName(f"build name {name!r} cannot be a git branch: no '..', no '.lock' or '.' at the end")
    first, _, rest = name.partition("-")
    if name in _FIRST or _reads_as_task(rest if first in _FIRST else name):
        raise InvalidName(
            f"build name {name!r} reads as the id of a task's saga: not 'build' or 'deliver' alone, no '-task-' inside"
        )
    return name


def is_task_id(name: str) -> bool:
    """Lower-case letters, digits and dashes, at most 40."""
    return _TASK.fullmatch(name) is not None


def check_project_name(name: str) -> str:
    """Return ``name``. Raises InvalidName."""
    if not _PROJECT.fullmatch(name):
        raise InvalidName(f"project name {name[:80]!r} is not lower-case letters, digits and dashes (at most 40)")
    if _reads_as_task(name):
        raise InvalidName(
            f"project name {name!r} would make its builds' names read as ids of tasks: no '-task-' inside"
        )
    return name


def _reads_as_task(name: str) -> bool:
    """Whether ``task_saga_id`` of another build could give the same id, so that two workflows would share it."""
    return "-task-" in f"{name}-"


def build_name(project: str, number: int) -> str:
    """The name of a project's ``number``-th build, which is its workflow id."""
    return f"build-{project}-{number}"


def task_saga_id(build: str, task: str) -> str:
    """The workflow id of a task's saga."""
    return f"{build}-task-{task}"


def result_branch(build: str) -> str:
    """The branch in the user's repository that a build ends on."""
    return f"mendwork/{build}"
