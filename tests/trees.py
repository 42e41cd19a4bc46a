"""What lies in a folder that others change while we look: ``Path.rglob`` raises where a folder goes away under it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def all_below(folder: Path) -> Iterator[Path]:
    """Files and folders; links are not followed."""
    for where, folders, names in os.walk(folder):
        yield from (Path(where, name) for name in (*folders, *names))


def files_below(folder: Path) -> Iterator[Path]:
    """Files alone, those behind links included."""
    return (path for path in all_below(folder) if path.is_file())
