"""Names for the shell's completion: cheap, silent, from the file and a SQLite store. Nothing is made or waited for."""

from __future__ import annotations

import os
import sqlite3
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

FILE = "mendwork.toml"
MOST = 100
_PATIENCE_SECONDS = 0.2


def project_names(incomplete: str) -> Sequence[str]:
    """Those of the configuration that begin so."""
    _, values = _configuration(Path.cwd(), os.environ)
    projects = values.get("projects")
    return [name for name in projects if name.startswith(incomplete)] if isinstance(projects, dict) else []


def build_names(incomplete: str) -> Sequence[str]:
    """The newest that begin so; none where the store is on another machine."""
    root, values = _configuration(Path.cwd(), os.environ)
    store = os.environ.get("MENDWORK_STORE") or values.get("store") or ""
    if root is None or not isinstance(store, str) or (store and not store.startswith("sqlite")):
        return []
    named = "/" + store.partition(":////")[2] if store else ""
    try:
        return _builds(Path(named) if named else root / ".mendwork" / "mendwork.db", incomplete)
    except sqlite3.Error:
        return []


def _builds(database: Path, incomplete: str) -> Sequence[str]:
    address = f"{database.as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_SECONDS)) as connection:
        found = connection.execute(
            "SELECT build FROM builds WHERE substr(build, 1, ?) = ? ORDER BY started DESC LIMIT ?",
            (len(incomplete), incomplete, MOST),
        )
        return [str(name) for (name,) in found]


def _configuration(start: Path, environment: Mapping[str, str]) -> tuple[Path | None, Mapping[str, Any]]:
    """The folder of the file and its values, as far as they can be read."""
    named = environment.get("MENDWORK_CONFIG", "")
    places = [Path(named)] if named else [folder / FILE for folder in (start, *start.parents)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return None, {}
    try:
        return file.resolve().parent, tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None, {}
