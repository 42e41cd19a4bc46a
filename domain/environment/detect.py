"""From the files of a repository to how its dependencies are set up, and which of its files decide that."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from domain.environment.project import Setup

PYPI = ("pypi.org", "files.pythonhosted.org")
NPM = ("registry.npmjs.org",)
GO = ("proxy.golang.org", "sum.golang.org")
PYTHON_INPUTS = (
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "requirements/*.txt", "constraints*.txt"),
    *("uv.lock", "poetry.lock", "pylock*.toml", "uv.toml", "poetry.toml", ".python-version"),
)
NODE_INPUTS = ("package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", ".nvmrc")
GO_INPUTS = ("go.mod", "go.sum", "go.work", "go.work.sum")
INPUTS = (*PYTHON_INPUTS, *NODE_INPUTS, *GO_INPUTS)
"""What decides where a project's configuration does not say: each in every folder."""

READ = ("pyproject.toml", "package.json", "go.mod", "requirements*.txt")
"""The files whose content ``detected`` may look at, at the top of the repository only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """``name`` is "uv", "poetry", "pip", "npm" or "go"; ``because`` is the file that says so. ``setup`` can be written
    to a configuration as it is. ``programs`` are the folders, relative to the checkout, that come first on PATH in the
    sandbox afterwards, so that a test command such as ("python", "-m", "pytest") or ("jest",) means theirs."""

    name: str
    because: str
    setup: Setup
    programs: tuple[str, ...]


def detected(files: Mapping[str, bytes | None]) -> tuple[Ecosystem, ...]:
    """How a repository is set up, the likeliest first; () when nothing at its top tells.

    ``files`` maps every path of the repository ("/" between its parts) to its content, or to None where that was not
    read; of the content only that of ``READ`` counts, and what cannot be parsed counts as empty. At most one of uv,
    poetry and pip is named, at most one npm and one Go.
    """
    top = {path: content for path, content in files.items() if "/" not in path}
    found = (_python(top), _node(top), _go(top))
    return tuple(each for each in found if each is not None)


def _python(top: Mapping[str, bytes | None]) -> Ecosystem | None:
    project = _toml(top.get("pyproject.toml"))
    tools = project.get("tool", {}) if isinstance(project.get("tool"), dict) else {}
    if "uv.lock" in top or ("project" in project and ("uv" in tools or "dependency-groups" in project)):
        return _ecosystem("uv", "uv.lock" if "uv.lock" in top else "pyproject.toml", ("uv", "sync"))
    if "poetry.lock" in top or ("poetry" in tools and "project" not in project):
        return _ecosystem("poetry", "poetry.lock" if "poetry.lock" in top else "pyproject.toml", ("poetry", "install"))
    wanted, because = _pip_wants(top, project)
    if not because:
        return None
    script = f"python3 -m venv .venv && .venv/bin/python -m pip install {wanted}"
    return _ecosystem("pip", because, ("sh", "-ec", script))


def _pip_wants(top: Mapping[str, bytes | None], project: Mapping[str, Any]) -> tuple[str, str]:
    """The words for pip, and the file that says so. The project itself is installed as a link to the checkout: its
    files are those of the commit that is tested, whichever commit was set up."""
    lists = sorted(path for path in top if PurePosixPath(path).match("requirements*.txt") and path.isascii())
    words = [f"-r {path}" for path in lists if path.replace("-", "").replace("_", "").replace(".", "").isalnum()]
    installable = next((name for name in ("pyproject.toml", "setup.py", "setup.cfg") if name in top), "")
    if installable == "pyproject.toml" and not project.keys() & {"project", "build-system"}:
        installable = next((name for name in ("setup.py", "setup.cfg") if name in top), "")
    if installable:
        words.append(f"-e .{_extras(project)}")
    return " ".join(words), installable or (lists[0] if words else "")


def _extras(project: Mapping[str, Any]) -> str:
    extras = (
        project.get("project", {}).get("optional-dependencies", {}) if isinstance(project.get("project"), dict) else {}
    )
    known = extras if isinstance(extras, dict) else ()
    chosen = [name for name in ("test", "tests", "testing", "dev") if name in known]
    return f"[{','.join(chosen)}]" if chosen else ""


def _node(top: Mapping[str, bytes | None]) -> Ecosystem | None:
    if "package.json" not in top:
        return None
    setup = Setup(command=("npm", "install"), folder="node_modules", registries=NPM, inputs=NODE_INPUTS)
    return Ecosystem(name="npm", because="package.json", setup=setup, programs=("node_modules/.bin",))


def _go(top: Mapping[str, bytes | None]) -> Ecosystem | None:
    if "go.mod" not in top:
        return None
    # The go tool passes over folders whose names begin with a dot.
    setup = Setup(command=("go", "mod", "download"), folder=".gomodcache", registries=GO, inputs=GO_INPUTS)
    return Ecosystem(name="go", because="go.mod", setup=setup, programs=())


def _ecosystem(name: str, because: str, command: tuple[str, ...]) -> Ecosystem:
    setup = Setup(command=command, folder=".venv", registries=PYPI, inputs=PYTHON_INPUTS)
    return Ecosystem(name=name, because=because, setup=setup, programs=(".venv/bin",))


def _toml(content: bytes | None) -> dict[str, Any]:
    try:
        return tomllib.loads((content or b"").decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def is_input(path: str, setup: Setup) -> bool:
    """Whether the file decides what is installed; a pattern with a "/" is one for the whole path, or its end where it
    comes from ``INPUTS``."""
    own = PurePosixPath(f"/{path}")
    named = any(own.match(f"/{pattern}" if "/" in pattern else pattern) for pattern in setup.inputs)
    return named or (not setup.inputs and any(own.match(pattern) for pattern in INPUTS))
