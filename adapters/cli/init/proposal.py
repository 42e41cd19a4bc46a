"""What ``mendwork init`` proposes: each value with where it was seen."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from adapters.cli.init.repository import Repository
from adapters.cli.init.testing import TestCommand, test_commands
from domain.build.project import Limits
from domain.environment.detect import READ, Ecosystem, detected
from domain.environment.project import Setup

LANGUAGES = {"uv": "python", "poetry": "python", "pip": "python", "npm": "node", "go": "go"}
_NAMES_PYTEST = re.compile(rb"""(?m)^\s*pytest\b(?!\s*\])|['"]pytest\b""")
ROOM = 4
"""A run's scratch space holds its checkout so many times over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """``because`` says for each key where it was seen. ``test`` is () where no tests were found: ``untested`` counts
    then. ``others`` are further test commands and set-ups that were seen and not taken. ``limits`` differ from the
    defaults."""

    name: str
    folder: Path
    branch: str
    test: tuple[str, ...]
    untested: str
    setup: Setup | None
    toolchain: tuple[str, ...]
    limits: Mapping[str, int]
    because: Mapping[str, str]
    others: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def propose(repository: Repository, *, name: str) -> Proposal:
    """From the files of its branch. Reads only."""
    ecosystems = _ecosystems(repository)
    python = "python" if any(LANGUAGES[each.name] == "python" for each in ecosystems) else "python3"
    commands = test_commands(repository.files, repository.text, python=python)
    chosen = commands[0] if commands else None
    ecosystem = _fitting(ecosystems, chosen)
    shown, warnings = _toolchain(chosen, ecosystem)
    because = {"repository": "where init was run", "branch": repository.because}
    because["test"] = chosen.because if chosen else "no tests were found"
    if ecosystem:
        because["setup"] = ecosystem.because
    limits = _limits(repository)
    if limits:
        size = sum(repository.files.values())
        because["limits"] = f"the {len(repository.files)} files of the branch have {size} bytes"
    others = [f"test command {' '.join(each.argv)} ({each.because})" for each in commands[1:]]
    others += [f"set-up {' '.join(e.setup.command)} ({e.because})" for e in ecosystems if e is not ecosystem]
    return Proposal(
        name=name or project_name(repository.folder.name),
        folder=repository.folder,
        branch=repository.branch,
        test=chosen.argv if chosen else (),
        untested="" if chosen else "syntax",
        setup=_setup(repository, ecosystem, chosen) if ecosystem else None,
        toolchain=shown,
        limits=limits,
        because=because,
        others=tuple(others),
        warnings=warnings,
    )


def project_name(folder: str) -> str:
    """What a folder's name can be as a project's: lower-case letters, digits and dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")[:40].strip("-")
    return name.replace("-task-", "-").removesuffix("-task") or "project"


def _ecosystems(repository: Repository) -> tuple[Ecosystem, ...]:
    files: dict[str, bytes | None] = dict.fromkeys(repository.files)
    for path in repository.files:
        if "/" not in path and any(fnmatch(path, pattern) for pattern in READ):
            files[path] = repository.text(path)
    return tuple(each for each in detected(files) if _needed(each, files))


def _needed(ecosystem: Ecosystem, files: Mapping[str, bytes | None]) -> bool:
    """Whether there is anything to install: a package.json or a go.mod may name nothing."""
    if ecosystem.name == "go":
        return bool(re.search(rb"(?m)^\s*require\b", files.get("go.mod") or b""))
    if ecosystem.name != "npm":
        return True
    try:
        manifest = json.loads(files.get("package.json") or b"{}")
    except ValueError:
        return True
    kinds = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "workspaces")
    return not isinstance(manifest, dict) or any(manifest.get(kind) for kind in kinds)


def _fitting(ecosystems: tuple[Ecosystem, ...], chosen: TestCommand | None) -> Ecosystem | None:
    """The one in whose language the tests are; the first where the tests do not tell."""
    if chosen and chosen.language:
        return next((each for each in ecosystems if LANGUAGES[each.name] == chosen.language), None)
    return ecosystems[0] if ecosystems else None


def _setup(repository: Repository, ecosystem: Ecosystem, chosen: TestCommand | None) -> Setup:
    """With the test runner, where pip would install all but that."""
    setup = ecosystem.setup
    if ecosystem.name != "pip" or chosen is None or "pytest" not in chosen.argv:
        return setup
    manifests = [
        path for path in repository.files if "/" not in path and path.endswith((".txt", ".toml", ".py", ".cfg"))
    ]
    if any(_NAMES_PYTEST.search(repository.text(path) or b"") for path in manifests):
        return setup
    *shell, script = setup.command
    return replace(setup, command=(*shell, f"{script} pytest"), packages=(*setup.packages, "pytest"))


def _toolchain(chosen: TestCommand | None, ecosystem: Ecosystem | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the sandbox would show for the commands beside the system's folders, and what is not there."""
    from adapters.sandbox.toolchain import default_toolchain
    from domain.environment.inside import tools
    from domain.errors import InvalidInput

    programs = [chosen.argv[0]] if chosen and not (ecosystem and ecosystem.programs) else []
    programs += [tools(ecosystem.setup)[0]] if ecosystem else []
    shown: dict[str, None] = {}
    warnings = []
    for program in programs:
        try:
            shown |= dict.fromkeys(map(str, default_toolchain((program,), os.environ.get("PATH", ""))))
        except InvalidInput as error:
            warnings.append(str(error))
    return tuple(shown), tuple(warnings)


def _limits(repository: Repository) -> dict[str, int]:
    """Larger than the defaults, where the repository needs it."""
    size, usual = sum(repository.files.values()), Limits()
    if ROOM * size <= usual.test_scratch_bytes:
        return {}
    scratch = -(-ROOM * size // 100_000_000) * 100_000_000
    return {
        "test_scratch_bytes": scratch,
        "test_memory_bytes": max(usual.test_memory_bytes, 2 * scratch),
    }
