"""What a run on top of a set-up is shown: the tools that made it, and what it left, read-only and first on PATH."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from domain.build.project import Project
from domain.environment.inside import later_variables, program_folders, tools
from domain.errors import InvalidInput
from domain.ports.kept.environments import UsedEnvironment
from domain.ports.sandbox import SandboxRun


def with_dependencies(
    run: SandboxRun, project: Project, used: UsedEnvironment, toolchain: Callable[[Project], tuple[Path, ...]]
) -> SandboxRun:
    """``run`` as it sees what its project has set up. Nothing that is shown for it follows from what the set-up left,
    which a model may have written: the tools are those that made it."""
    setup = project.setup
    if setup is None:
        return run
    shown = list(tool_folders(project, toolchain))
    program = run.argv[0]
    if not any(os.path.lexists(used.folder / place / program) for place in (".bin", "bin")) and "/" not in program:
        shown += toolchain(replace(project, test=run.argv))
    return replace(
        run,
        toolchain=tuple(dict.fromkeys(shown)),
        environment={**later_variables(setup), **run.environment},
        mounts={setup.folder: used.folder},
        programs=program_folders(setup),
    )


def tool_folders(project: Project, toolchain: Callable[[Project], tuple[Path, ...]]) -> tuple[Path, ...]:
    """What the sandbox shows for the project's set-up. Raises InvalidInput when its command is not on this machine."""
    shown: list[Path] = []
    for number, program in enumerate(tools(project.setup) if project.setup else ()):
        with contextlib.suppress(*((InvalidInput,) if number else ())):  # a word of a script may be no program
            shown += toolchain(replace(project, test=(program,)))
    return tuple(dict.fromkeys(shown))
