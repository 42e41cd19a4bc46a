"""docker-compose.yml as docker-compose 1.29 resolves it, with an empty environment."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
FILE = CHECKOUT / "docker-compose.yml"
OURS = ("saga", "workspace", "model", "sandbox", "deploy")


@cache
def resolved(file: Path = FILE) -> dict[str, Any]:
    """All of it; fails with what docker-compose says."""
    done = subprocess.run(
        ["docker-compose", "-f", str(file), "config"],
        cwd=CHECKOUT,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = yaml.safe_load(done.stdout)
    return read


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = resolved()["services"]
    return found


def targets(service: str) -> set[str]:
    """The names of its files below /run/secrets."""
    return {each["target"] if "target" in each else each["source"] for each in services()[service].get("secrets", [])}
