"""Names for the shell's completion: cheap, silent, from the file and a SQLite store. Nothing is made or waited for."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, ParamSpec

import typer

FILE = "mendwork.toml"
MOST = 100
PHASES = ("intake", "plan", "approve_plan", "tasks", "review", "approve", "land", "deliver")
"""Those of a build, in their order."""
_PATIENCE_SECONDS = 0.2

P = ParamSpec("P")


def _silent(find: Callable[P, Sequence[str]]) -> Callable[P, Sequence[str]]:
    """Whatever goes wrong is no reason to write into the line that somebody types: nothing is offered."""

    @functools.wraps(find)
    def found(*args: P.args, **kwargs: P.kwargs) -> Sequence[str]:
        try:
            return find(*args, **kwargs)
        except Exception:
            return []

    return found


@_silent
def project_names(incomplete: str) -> Sequence[str]:
    """Those of the configuration that begin so."""
    return _section("projects", incomplete)


@_silent
def model_names(incomplete: str) -> Sequence[str]:
    """Those of the configuration that begin so."""
    return _section("models", incomplete)


@_silent
def build_names(incomplete: str) -> Sequence[str]:
    """The newest that begin so; none where the store is on another machine."""
    return _found("SELECT build FROM builds WHERE substr(build, 1, :length) = :begin ORDER BY started DESC", incomplete)


@_silent
def snapshot_tokens(incomplete: str) -> Sequence[str]:
    """Those of the newest builds, newest first."""
    return _found(_TOKENS, incomplete, build=incomplete.partition("@")[0])


@_silent
def release_numbers(context: typer.Context, incomplete: str) -> Sequence[str]:
    """The newest of the project that the line names, else of all."""
    return _found(_RELEASES, incomplete, project=context.params.get("project") or "")


@_silent
def phase_names(incomplete: str) -> Sequence[str]:
    """Those that the build of the line came through; all that there are where that is not known."""
    seen = _found(_PHASES, incomplete, line=_line(os.environ))
    return seen or [phase for phase in PHASES if phase.startswith(incomplete)]


@_silent
def task_names(incomplete: str) -> Sequence[str]:
    """Those of the build that the line names."""
    return _found(_TASKS, incomplete, line=_line(os.environ))


_TOKENS = """
SELECT events.build || '@' || json_extract(events.data, '$.number') AS token
FROM (SELECT build, started FROM builds WHERE substr(build, 1, length(:build)) = :build ORDER BY started DESC LIMIT 20)
AS newest JOIN events ON events.build = newest.build AND events.kind = 'snapshot.taken'
WHERE substr(token, 1, :length) = :begin ORDER BY newest.started DESC, events.position DESC
"""
_RELEASES = """
SELECT DISTINCT number FROM releases
WHERE substr(number, 1, :length) = :begin AND :project IN (project, '') ORDER BY number DESC
"""
_PHASES = """
SELECT json_extract(data, '$.phase') AS phase FROM events
WHERE build IN (SELECT value FROM json_each(:line)) AND kind = 'build.phase' AND substr(phase, 1, :length) = :begin
GROUP BY phase ORDER BY min(position)
"""
_TASKS = """
SELECT task FROM events
WHERE build IN (SELECT value FROM json_each(:line)) AND task != '' AND substr(task, 1, :length) = :begin
GROUP BY task ORDER BY min(position)
"""


def _line(environment: Mapping[str, str]) -> str:
    """The words of the line as JSON: an option that lacks its value keeps click from reading the others."""
    return json.dumps((environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or "").split())


def _section(name: str, incomplete: str) -> Sequence[str]:
    section = _configuration(Path.cwd(), os.environ)[1].get(name)
    return [each for each in section if each.startswith(incomplete)] if isinstance(section, dict) else []


def _found(query: str, incomplete: str, **given: str) -> Sequence[str]:
    """The first column, as far as the store lies here and answers within a blink."""
    file = _store(os.environ)
    if file is None:
        return []
    until = monotonic() + _PATIENCE_SECONDS
    values = {"begin": incomplete, "length": len(incomplete), **given}
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_SECONDS)) as connection:
            connection.set_progress_handler(lambda: monotonic() > until, 10_000)
            return [str(row[0]) for row in connection.execute(f"{query} LIMIT {MOST}", values)]
    except sqlite3.Error:
        return []


def _store(environment: Mapping[str, str]) -> Path | None:
    """The store's file; None where there is no configuration, or the store is a server."""
    root, values = _configuration(Path.cwd(), environment)
    store = environment.get("MENDWORK_STORE") or values.get("store") or ""
    if root is None or not isinstance(store, str) or (store and not store.startswith("sqlite")):
        return None
    named = "/" + store.partition(":////")[2] if store else ""
    return Path(named) if named else root / ".mendwork" / "mendwork.db"


def _configuration(start: Path, environment: Mapping[str, str]) -> tuple[Path | None, Mapping[str, Any]]:
    """The folder of the file and its values. Raises OSError and ValueError for one that cannot be read."""
    named = environment.get("MENDWORK_CONFIG", "")
    places = [Path(named)] if named else [folder / FILE for folder in (start, *start.parents)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return None, {}
    return file.resolve().parent, tomllib.loads(file.read_text(encoding="utf-8"))
