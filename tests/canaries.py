"""I6: secrets are nowhere but where they have to be. Read from histories, records, every file, and /proc."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from adapters.settings import Settings
from tests.delivered import Observed, Process, below, processes
from tests.e2e.workshop import Workshop

LOOKS, PAUSE = 3, 0.3
"""A process between its fork and its exec has its parent's environment: what is seen once has to be seen again."""


def check_secrets(seen: Observed) -> None:
    """I6: a canary is nowhere but where it has to be."""
    secrets = secrets_of(seen.at, seen.settings)
    for name, value in secrets.items():
        forms = list(spelled(value))
        for (saga, _), history in seen.histories.items():
            text = b"".join(event.SerializeToString() for event in history.events)
            assert not any(form in text for form in forms), f"{name} is in the history of {saga}"
        for release in seen.releases:
            text = json.dumps(dict(release.record)).encode()
            assert not any(form in text for form in forms), f"{name} is in the record of {release.saga}"
    orders = {name: {p for p in seen.orders if name in _wanted(seen.settings, p.parents[2].name)} for name in secrets}
    check_files(seen.at, secrets, allowed=orders)
    leaks = environment_leaks(seen, secrets)
    for _ in range(LOOKS - 1):
        if leaks:
            time.sleep(PAUSE)
            leaks &= environment_leaks(seen, secrets)
    assert not leaks, f"secrets that processes hold which must not: {leaks}"


def check_files(at: Workshop, secrets: Mapping[str, str], *, allowed: Mapping[str, Collection[Path]]) -> None:
    """I6: no file of the workshop holds a secret; ``allowed`` are those that have to, by the secret's name. Histories
    and rows are in the files of their databases."""
    forms = {name: list(spelled(value)) for name, value in secrets.items()}
    for path in files_of(at):
        text = _content(path)
        for name, spellings in forms.items():
            found = path not in allowed.get(name, ()) and any(form in text for form in spellings)
            assert not found, f"{name} is in {path}"


def secrets_of(at: Workshop, settings: Settings) -> dict[str, str]:
    """Name and value of each secret of a release and of each provider key."""
    names = {name for project in settings.allowlist() for name in _wanted(settings, project)}
    names |= {model.api_key_env for model in settings.models.values() if model.api_key_env}
    return {name: at.environment[name] for name in names if at.environment.get(name)}


def _wanted(settings: Settings, project: str) -> tuple[str, ...]:
    known = settings.allowlist().get(project)
    return known.delivery.secrets if known is not None and known.delivery is not None else ()


def spelled(value: str) -> Iterator[bytes]:
    """A secret as it is, in hexadecimal and in base64, wherever in a longer text it stood."""
    raw = value.encode()
    yield raw
    yield raw.hex().encode()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        yield whole[4 if shift else 0 : len(whole) - 4]


def files_of(at: Workshop) -> list[Path]:
    """Every file of the workshop: state, logs, blobs, databases, repositories; but for its configuration."""
    return [path for path in at.root.rglob("*") if path != at.root / "mendwork.toml" and not path.is_symlink()]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:  # workers still write and take away
        return b""


def environment_leaks(seen: Observed, secrets: Mapping[str, str]) -> set[tuple[str, int, str]]:
    """Secret, pid and command of processes that hold it and must not. ``mendwork dev`` gets what it hands on, and so do
    commands that a test starts."""
    known = {process.pid: process for process in processes()}
    pids = seen.at.pids()
    free = _children(known, os.getpid()) | {_main_of(seen.at)} | _children(known, pids.get("deploy", 0))
    found = set()
    for name, value in secrets.items():
        may = free | _children(known, pids.get("model", 0)) if name not in _deployed(seen) else set(free)
        may |= _own_units(seen, known, name)
        for process in known.values():
            words, held = value.encode() in process.words, value.encode() in process.environment
            if words or (held and process.pid not in may):
                found.add((name, process.pid, process.words.decode(errors="replace")[:100]))
    return found


def _deployed(seen: Observed) -> set[str]:
    return {name for project in seen.settings.allowlist() for name in _wanted(seen.settings, project)}


def _main_of(at: Workshop) -> int:
    try:
        pid: int = json.loads((at.state / "dev.json").read_text())["pid"]
    except (OSError, ValueError, KeyError):
        return 0
    return pid


def _children(known: Mapping[int, Process], pid: int) -> set[int]:
    return {pid} | {each.pid for each in known.values() if each.parent == pid} if pid in known else set()


def _own_units(seen: Observed, known: Mapping[int, Process], name: str) -> set[int]:
    """The processes of the releases whose project is given the secret."""
    own = [project for project in seen.settings.allowlist() if name in _wanted(seen.settings, project)]
    marks = [f"\0{kind}\0{project}/".encode() for project in own for kind in ("unit", "step")]
    launched = {each.pid for each in known.values() if any(mark in each.words for mark in marks)}
    return below(launched, known)
