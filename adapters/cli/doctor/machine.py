"""This machine: Python, git, the sandbox, room on the disk, the state folder."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from adapters.cli.doctor.finding import HOST_PATH, Finding, Patient, aside, cure_in
from adapters.cli.house.sizes import readable

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 38)  # older ones cannot merge without a working tree
ENOUGH_BYTES = 1_000_000_000
_INSTALL_GIT = "apt-get install -y git"


async def python(patient: Patient) -> Sequence[Finding]:
    """The interpreter that runs this, and its Temporal SDK."""
    told = f"Python {platform.python_version()}, temporalio {version('temporalio')}, {sys.executable}"
    old = sys.version_info < OLDEST_PYTHON
    return [_finding("python", "runs Mendwork", told, broken=old, cure="make setup" if old else "")]


async def git(patient: Patient) -> Sequence[Finding]:
    """Looked up where the workers look it up."""
    return [await aside(lambda: git_on(HOST_PATH))]


def git_on(path: str) -> Finding:
    """The git of a PATH. Blocks."""
    program, purpose = shutil.which("git", path=path), "mirrors, commits, landing"
    if program is None:
        return Finding(name="git", state="missing", purpose=purpose, detail="not found", cure=_INSTALL_GIT)
    said = subprocess.run(
        [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5, check=False
    ).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None:
        return _finding("git", purpose, f"{program} does not tell its version", broken=True, cure=_INSTALL_GIT)
    old = (int(found[1]), int(found[2])) < OLDEST_GIT
    needed = f", older than {OLDEST_GIT[0]}.{OLDEST_GIT[1]}" if old else ""
    cure = "apt-get install -y --only-upgrade git" if old else ""
    return _finding("git", purpose, f"{said.strip()}{needed}", broken=old, cure=cure)


async def sandbox(patient: Patient) -> Sequence[Finding]:
    """Found out by running nothing once, as everything is run."""
    from adapters.sandbox import open_sandbox

    engine = patient.settings.sandbox.engine if patient.settings else "bubblewrap"
    lacking = await aside(lambda: dict(open_sandbox(engine, patient.environment).missing()))
    return told_of_sandbox(engine, lacking, path=HOST_PATH)


def told_of_sandbox(engine: str, lacking: Mapping[str, str], *, path: str) -> Sequence[Finding]:
    """``lacking`` is what the sandbox port says is missing, ``path`` where the engine's program would be."""
    purpose = "runs model-written code apart"
    if engine == "mount":
        told = "mount, as configured: a copy and a process group; isolates no " + ", no ".join(sorted(lacking))
        return [Finding(name="sandbox", state="ok", purpose=purpose, detail=told)]
    if not lacking:
        told = f"{engine} isolates files, network and processes, and limits memory"
        return [Finding(name="sandbox", state="ok", purpose=purpose, detail=told)]
    absent = "engine" in lacking and not shutil.which("bwrap", path=path)
    return [
        Finding(
            name="sandbox" if what == "engine" else f"sandbox {what}",
            state="missing" if absent else "broken",
            purpose=purpose,
            detail=sentence,
            cure=cure_in(sentence),
        )
        for what, sentence in lacking.items()
    ]


async def disk(patient: Patient) -> Sequence[Finding]:
    """Room where the state folder is, or will be."""
    free = shutil.disk_usage(_existing(patient.state)).free
    short = free < ENOUGH_BYTES
    told = f"{readable(free)} free at {patient.state}" + (f", less than {readable(ENOUGH_BYTES)}" if short else "")
    cure = "mendwork gc" if short else ""
    return [_finding("disk", "store, mirrors, environments, logs", told, broken=short, cure=cure)]


async def folder(patient: Patient) -> Sequence[Finding]:
    """Only its owner may write there, and only he may read the store."""
    place, purpose = patient.state, "what Mendwork keeps"
    if not place.exists():
        parent = _existing(place)
        told = f"{place} will be made by the first `mendwork dev`"
        return [
            _unwritable("state", purpose, parent) or Finding(name="state", state="ok", purpose=purpose, detail=told)
        ]
    found = _unwritable("state", purpose, place) or _open_to_others(place, stat.S_IWGRP | stat.S_IWOTH, "go-w")
    database = place / "mendwork.db"
    if found is None and database.exists():
        found = _open_to_others(database, stat.S_IRWXG | stat.S_IRWXO, "go-rwx")
    return [found or Finding(name="state", state="ok", purpose=purpose, detail=f"{place}, writable by its owner only")]


def _unwritable(name: str, purpose: str, place: Path) -> Finding | None:
    if os.access(place, os.W_OK | os.X_OK):
        return None
    cure = f"sudo chown -R {os.getuid()} {place}"
    return Finding(name=name, state="broken", purpose=purpose, detail=f"{place} cannot be written to", cure=cure)


def _open_to_others(place: Path, bits: int, change: str) -> Finding | None:
    mode = stat.S_IMODE(place.stat().st_mode)
    if not mode & bits:
        return None
    told = f"{place} is open to others (mode {mode:o})"
    return _finding("state", "what Mendwork keeps", told, broken=True, cure=f"chmod {change} {place}")


def _existing(place: Path) -> Path:
    return next(folder for folder in (place, *place.resolve().parents) if folder.exists())


def _finding(name: str, purpose: str, detail: str, *, broken: bool, cure: str) -> Finding:
    return Finding(name=name, state="broken" if broken else "ok", purpose=purpose, detail=detail, cure=cure)
