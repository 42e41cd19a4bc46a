"""The end of the demo: the diff, the cost, what was recovered from, where to look."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from adapters.temporal.finding import find_server

from .engine import Engine
from .processes import run
from .scene import MENDWORK, PROJECT
from .story import Story

SCREEN = ("DISPLAY", "WAYLAND_DISPLAY")
"""Without them no browser is opened: the demo prints where the page is."""


def show_troubles(engine: Engine, build: str, story: Story) -> int:
    """Everything that went wrong and was recovered from. Returns how much that was."""
    lines = _faults(json.loads(engine.run("show", build, "--json")))
    lines += [f"{sent.task}: sent back ({sent.why}): {sent.sentence}" for sent in story.sent_back()]
    for line in lines:
        engine.narrator.tell(line)
    return len(lines)


def show_cost(engine: Engine, status: dict[str, Any], *, scripted: bool) -> None:
    """What the build cost."""
    price = "invented prices of 3 and 15 USD per million tokens" if scripted else "real money"
    engine.narrator.tell(f"${status['cost_micros'] / 1_000_000:.4f} for {status['calls']} calls ({price})")
    if status.get("calls_unknown"):
        engine.narrator.tell(
            f"{status['calls_unknown']} of them was lost with its worker: its cost counts as unknown, not as zero"
        )


def show_release(engine: Engine, number: int) -> None:
    """The record of a release, with its risk line by line and its figures."""
    engine.narrator.command(f"mendwork release show {number}")
    for line in engine.run("release", "show", str(number)).splitlines():
        engine.narrator.tell(line)


def show_releases(engine: Engine, number: int) -> None:
    """All releases, and the report of one as a page with its figures drawn."""
    engine.narrator.command("mendwork release list")
    for line in engine.run("release", "list").splitlines():
        engine.narrator.tell(line)
    engine.narrator.command(f"mendwork release show {number} --open")
    hidden = {name: value for name, value in engine.environment.items() if name not in SCREEN}
    page = run([MENDWORK, "release", "show", str(number), "--open"], environment=hidden).strip()
    engine.narrator.tell(f"its report, with the figures drawn: {_short(Path(page))}")


def show_where(engine: Engine, build: str, branch: str) -> None:
    """The commands and addresses for going on by oneself."""
    running = engine.running()
    tell, command = engine.narrator.tell, engine.narrator.command
    tell("The same build in Temporal's web UI, while this demo runs:")
    tell(f"  {running['ui']}/namespaces/{running['namespace']}/workflows/{build}")
    tell("and on Temporal's command line:")
    command(f"{_temporal(engine)} workflow show --address {running['address']} --workflow-id {build}")
    tell("The branch to look at:")
    command(f"git -C {_short(engine.scene.repository)} log --stat {branch}")
    tell("What Mendwork knows about it, now and later:")
    command(f"MENDWORK_CONFIG={_short(engine.scene.config)} .venv/bin/mendwork show {build}")
    command(f"MENDWORK_CONFIG={_short(engine.scene.config)} .venv/bin/mendwork trace {build}")


def _faults(details: dict[str, Any]) -> list[str]:
    lines = [f"planning or review: {_sentence(fault)}" for fault in details["faults"]]
    for task in details["tasks"].values():
        for attempt in task["attempts"]:
            where = f"{task['task']} #{attempt['number']}"
            lines += [f"{where}: {_sentence(fault)}" for fault in attempt["faults"]]
            if attempt["reason"] and not attempt["green"]:
                lines.append(f"{where}: {attempt['reason']}")
    return lines


def _sentence(fault: dict[str, Any]) -> str:
    return f"{fault['kind']}: {fault['sentence']}"


def _temporal(engine: Engine) -> str:
    if shutil.which("temporal"):
        return "temporal"
    named = engine.environment.get("MENDWORK_TEMPORAL__SERVER")
    found = find_server(explicit=Path(named) if named else None, environment=engine.environment)
    return os.path.relpath(found, PROJECT) if found.is_relative_to(PROJECT) else str(found)


def _short(path: os.PathLike[str]) -> str:
    relative = os.path.relpath(path, PROJECT)
    return str(path) if relative.startswith("..") else relative
