"""Which Mendwork this is."""

from __future__ import annotations

import json as jsonlib
import platform
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

from adapters.cli.session import put, say

CHECKOUT = Path(__file__).resolve().parents[3]


def release(checkout: Path = CHECKOUT) -> str:
    """Its number, as in "0.1.0": the checkout's own, which needs not be installed; that of the package elsewhere."""
    try:
        project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    except FileNotFoundError:
        return version("mendwork")
    return str(project["version"])


def show(*, json: bool) -> None:
    """Print it; the commit, for people, beside it."""
    if not json:
        put(release())
        if known := commit(CHECKOUT):
            say(f"commit {known}")
        return
    versions = {
        "version": release(),
        "python": platform.python_version(),
        "temporalio": version("temporalio"),
        "commit": commit(CHECKOUT),
    }
    put(jsonlib.dumps(versions))


def commit(checkout: Path) -> str | None:
    """The commit of a checkout; None for one without a history, or where git cannot tell."""
    if not (checkout / ".git").exists():
        return None
    try:
        said = subprocess.run(
            ["git", "-c", f"safe.directory={checkout}", "-C", checkout, "rev-parse", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return said.strip() or None
