"""``mendwork release list`` and ``show``: the record of releases, and the report of one."""

from __future__ import annotations

import json as jsonlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.cli.build import project_of
from adapters.cli.lines import plain
from adapters.cli.release.facts import integration_lines, risk_lines
from adapters.cli.release.series import Row, coloured, drawn
from adapters.cli.release.showing import moments_in, record_of, watch_of
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.errors import InvalidInput, UnknownName
from domain.ports.releases import Release
from domain.trace.delivery.told import texts

if TYPE_CHECKING:
    from domain.ports.store import Store

OPENERS = ("xdg-open", "open")
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which release, and how it is shown."""

    number: int
    project: str = ""
    json: bool = False
    open: bool = False


async def many(settings: Settings, *, project: str, limit: int, json: bool) -> int:
    """The newest releases of a project, or of every one that is configured, a line each. Raises UnknownName."""
    from adapters.store import open_store

    names = [project_of(settings, project).name] if project else sorted(settings.projects)
    async with await open_store(settings.store_url) as store:
        found = [release for name in names for release in await store.releases.list(name, limit=limit)]
    if json:
        put(jsonlib.dumps([_as_json(release) for release in found]))
        return 0
    for release in found:
        put(_line(release))
    if not found:
        say("nothing was delivered yet")
    return 0


async def one(settings: Settings, shown: Shown) -> int:
    """One release with all of its record; as a page in a browser with ``open``. Raises UnknownName, InvalidInput."""
    from adapters.store import open_store

    if shown.json and shown.open:
        raise InvalidInput("--json is data, --open a page: ask for one of them")
    async with await open_store(settings.store_url) as store:
        project = shown.project or await _only_project(settings, store)
        release = await known_release(store, project_of(settings, project).name, shown.number)
    if shown.open:
        from adapters.cli.release.report import written

        _open(written(settings.state / "reports", release))
    elif shown.json:
        put(jsonlib.dumps(_as_json(release)))
    else:
        colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for row in rows_of(release):
            put(coloured(Row(text=plain_indented(row.text), style=row.style), colours=colours))
    return 0


async def known_release(store: Store, project: str, number: int) -> Release:
    """Raises UnknownName with the newest releases' numbers."""
    release = await store.releases.get(project, number)
    if release is None:
        known = [str(each.number) for each in await store.releases.list(project, limit=10)]
        raise UnknownName.among(f"release of {project}", str(number), known)
    return release


async def _only_project(settings: Settings, store: Store) -> str:
    """The only project that has releases; "" where that does not tell."""
    found = [name for name in settings.projects if await store.releases.list(name, limit=1)]
    return found[0] if len(found) == 1 else ""


def rows_of(release: Release) -> Iterator[Row]:
    """The whole record for a terminal; may hold untrusted text."""
    record = record_of(release)
    yield Row(text=_line(release), style="bold")
    if release.sentence:
        yield Row(text=f"  {release.sentence}")
    yield Row(text=f"  commit {release.commit or '–'}")
    yield Row(text=f"  artefact {release.artifact or '–'}, configuration {release.config or '–'}")
    yield Row(text=f"  before it: {f'release {release.previous}' if release.previous else 'nothing'}")
    for lines in (_approvals(record), risk_lines(record["risk"]), integration_lines(record["integration"])):
        yield from (Row(text=f"  {line}") for line in lines)
    yield from (Row(text=f"  {line}") for line in _steps(record))
    kind, reason, points = watch_of(record)
    if kind or points:
        yield Row(text=f"  watch: {kind or 'goes on'}{f', {reason}' if reason else ''}")
    yield from drawn(points, moments_in(release)) if points else ()
    yield from (Row(text=f"  {line}") for line in _ending(record))


def _approvals(record: Mapping[str, Any]) -> Iterator[str]:
    for each in record["approved"]:
        digest = f" {str(each['digest'])[:12]}" if each.get("digest") else ""
        yield f"approved: {each.get('what', '')}{digest} by {each.get('by') or 'nobody'} ({each.get('how', '')})"


def _steps(record: Mapping[str, Any]) -> Iterator[str]:
    for each in record["steps"]:
        done = "done" if each.get("green") else "failed"
        yield f"step {each.get('name', '')} ({each.get('kind', '')}) {done}: {each.get('sentence', '')}"


def _ending(record: Mapping[str, Any]) -> Iterator[str]:
    proof = record["proof"]
    if proof:
        seen = "seen from outside" if proof.get("ok") else "NOT seen from outside"
        yield f"proof: production answers with release {proof.get('release', '?')}, {seen}"
    timings = record["timings"]
    if timings:
        yield "timings: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in timings.items())
    for each in texts(record["residues"]):
        yield f"left behind: {each}"


def _line(release: Release) -> str:
    began = datetime.fromtimestamp(release.started / 1000, UTC).strftime("%Y-%m-%d %H:%M") if release.started else "–"
    what = "rollback  " if release.kind == "rollback" else ""
    return (
        f"{release.project}  release {release.number}  {release.status}  {what}{release.commit[:12]}  {began}  "
        f"{release.build or release.saga}"
    )


def plain_indented(text: str) -> str:
    """One printable line that keeps the blanks before it."""
    return " " * (len(text) - len(text.lstrip(" "))) + plain(text)


def _as_json(release: Release) -> dict[str, Any]:
    return asdict(release) | {"record": dict(release.record)}


def _open(path: Path) -> None:
    """Print where it is, and show it where there is a screen and a program for it."""
    put(str(path))
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    opener = next(filter(None, map(shutil.which, OPENERS)), None) if screen else None
    if opener is None:
        return
    nothing = subprocess.DEVNULL
    shown = subprocess.Popen([opener, str(path)], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    try:
        if shown.wait(PATIENCE_SECONDS):
            say(f"{opener} cannot show it")
    except subprocess.TimeoutExpired:
        return  # a browser in the foreground: it is the person's own now
