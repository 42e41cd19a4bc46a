"""All checks at once, none of which may fail the others or keep people waiting."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from adapters.cli.config.masking import without_passwords
from adapters.cli.doctor import bucket, configured, machine, server, store
from adapters.cli.doctor.finding import Finding, Patient
from adapters.cli.doctor.fixing import fix
from adapters.cli.exits import DONE, OWN_FAILURE
from adapters.cli.lines import plain
from adapters.cli.session import put, say
from domain.errors import MendworkError

Check = Callable[[Patient], Awaitable[Sequence[Finding]]]

WITHIN_SECONDS = 9.0
CHECKS: Mapping[str, Check] = {
    "python": machine.python,
    "git": machine.git,
    "temporal": server.program,
    "server": server.server,
    "store": store.store,
    "blobs": bucket.blobs,
    "sandbox": machine.sandbox,
    "targets": configured.targets,
    "models": configured.models,
    "encryption": configured.encryption,
    "projects": configured.projects,
    "disk": machine.disk,
    "state": machine.folder,
}
"""In the order in which they are told."""


async def doctor(*, start: Path, environment: Mapping[str, str], repair: bool, json: bool) -> int:
    """Print a line a finding; 0 when all is well, 1 otherwise. ``repair`` cures first what can be cured here."""
    patient, about_settings = configured.admit(start, environment)
    if repair:
        for line in await fix(patient):
            say(line)
    found = [_shown(each) for each in (about_settings, *await examine(patient))]
    ill = [each for each in found if each.state != "ok"]
    if json:
        put(jsonlib.dumps({"ok": not ill, "checks": [asdict(each) for each in found]}))
    else:
        for each in found:
            put(told(each))
        say("all is well" if not ill else f"{len(ill)} of {len(found)} need attention")
    return OWN_FAILURE if ill else DONE


def end_children() -> None:
    """Kill what this process started and did not wait for: a program that hangs. Only for a process that ends now."""
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for pid in file.read_text().split():
                os.kill(int(pid), signal.SIGKILL)


async def examine(
    patient: Patient, *, checks: Mapping[str, Check] = CHECKS, within: float = WITHIN_SECONDS
) -> Sequence[Finding]:
    """What all of them find, in their order; one that fails or hangs is a finding itself."""
    running = {name: asyncio.create_task(_guarded(name, check(patient))) for name, check in checks.items()}
    _, late = await asyncio.wait(running.values(), timeout=within)
    for task in late:
        task.cancel()
    await asyncio.wait(running.values(), timeout=1)
    return [each for name, task in running.items() for each in _outcome(name, task, within)]


def told(finding: Finding) -> str:
    """One line for people: state, name, what was found, what it is for, the cure."""
    detail = finding.detail if not finding.cure else finding.detail.removesuffix(finding.cure).rstrip(" :")
    cure = f" -> {finding.cure}" if finding.cure else ""
    return plain(f"{finding.state:<8} {finding.name:<18} {detail} [{finding.purpose}]{cure}")


def _shown(finding: Finding) -> Finding:
    return replace(finding, detail=without_passwords(finding.detail), cure=without_passwords(finding.cure))


async def _guarded(name: str, check: Awaitable[Sequence[Finding]]) -> Sequence[Finding]:
    try:
        return await check
    except MendworkError as error:
        sentence = str(error)
    except Exception as error:  # a doctor that falls ill says of what, and goes on
        sentence = f"this check failed: {type(error).__name__}"
    return [_unknown(name, sentence)]


def _outcome(name: str, task: asyncio.Task[Sequence[Finding]], within: float) -> Sequence[Finding]:
    if task.done() and not task.cancelled():
        return task.result()
    return [_unknown(name, f"no answer within {within:g} s")]


def _unknown(name: str, sentence: str) -> Finding:
    """What it was for is not known any more, and what may help is another look."""
    return Finding(name=name, state="broken", purpose="one of the checks", detail=sentence, cure="mendwork doctor")
