"""What a set-up and the runs on top of it find in their environment: programs, folders, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from domain.environment.project import Setup

WORK = "/work"
"""Where a run's checkout is, in every sandbox."""

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_NEEDED = {"uv": "python3", "pip": "python3", "pip3": "python3", "poetry": "python3", "npm": "node", "npx": "node"}
_KNOWN = frozenset({*_NEEDED, "go", "node", "python", "python3"})
_EVERYWHERE = {"GOTOOLCHAIN": "local", "UV_PYTHON_DOWNLOADS": "never", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
_SETTING_UP = {
    **_EVERYWHERE,
    "CI": "1",
    "GOFLAGS": "-modcacherw",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_INPUT": "1",
    "POETRY_NO_INTERACTION": "1",
    "POETRY_VIRTUALENVS_IN_PROJECT": "true",
    # A checkout has no history for a version to be made of, and nothing of it may depend on which commit was set up.
    "SETUPTOOLS_SCM_PRETEND_VERSION": "999.0.0",
    "UV_COMPILE_BYTECODE": "1",  # nobody can do it later
    "UV_LINK_MODE": "copy",
    "UV_NO_PROGRESS": "1",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
}
_LATER = {
    **_EVERYWHERE,
    # Modules that a change adds to go.mod were checked against the sums when they were set up.
    "GOFLAGS": "-mod=mod",
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "PIP_NO_INDEX": "1",
    "UV_NO_SYNC": "1",
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "npm_config_update_notifier": "false",
}


def tools(setup: Setup) -> tuple[str, ...]:
    """The programs that the sandbox has to show for the set-up and for what runs on top of it; the first must be there.

    A script (``sh -c "…"``) names its programs as words; what a tool itself needs comes with it.
    """
    words = [word for text in setup.command[1:] for word in re.split(r"[\s;&|()]+", text)]
    named = [setup.command[0], *(word for word in words if word in _KNOWN or _PYTHON.fullmatch(word))]
    return tuple(dict.fromkeys(each for name in named for each in (name, _NEEDED.get(name, name))))


def program_folders(setup: Setup) -> tuple[str, ...]:
    """Relative to the checkout, what comes first on PATH: of a virtual environment, and of ``node_modules``."""
    return (f"{setup.folder}/bin", f"{setup.folder}/.bin")


def setup_variables(setup: Setup) -> Mapping[str, str]:
    """What the set-up command is told: be quiet, ask nobody, install here, and only with what is there."""
    return {**_SETTING_UP, **_places(setup)}


def later_variables(setup: Setup) -> Mapping[str, str]:
    """What later runs are told: everything is there, and nothing else can be had."""
    return {**_LATER, **_places(setup), "VIRTUAL_ENV": f"{WORK}/{setup.folder}"}


def _places(setup: Setup) -> Mapping[str, str]:
    folder = f"{WORK}/{setup.folder}"
    return {"GOMODCACHE": folder, "UV_PROJECT_ENVIRONMENT": folder}
