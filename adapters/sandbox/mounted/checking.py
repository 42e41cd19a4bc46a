"""Runs that cannot be, whatever the engine."""

from __future__ import annotations

from pathlib import PurePosixPath

from domain.errors import InvalidInput
from domain.ports.sandbox import SandboxRun


def check(run: SandboxRun) -> None:
    """Raises InvalidInput with what is wrong."""
    if not run.argv or any("\0" in word for word in run.argv):
        raise InvalidInput("the command to run is empty, or has a zero byte in it")
    if not run.folder.is_dir() and not run.folder.is_file():
        raise InvalidInput(f"the folder to run in, {run.folder}, does not exist")
    if run.outlet and not 1024 <= run.outlet.port <= 65535:
        raise InvalidInput(f"a run can be led to a port from 1024 to 65535, not to {run.outlet.port}")
    if run.kept and (run.mounts or run.collect or not run.kept.is_dir()):
        raise InvalidInput(f"a run can be given the empty folder {run.kept} alone, with no other folder in it")
    if run.collect and not _is_inside(run.collect.folder, top=True):
        raise InvalidInput(f"the folder to take out, {run.collect.folder!r}, is no plain path inside the checkout")
    for place, folder in run.mounts.items():
        if not _is_inside(place) or not folder.is_dir():
            raise InvalidInput(f"the folder {folder} cannot be shown at {place!r}, inside the checkout")


def _is_inside(folder: str, *, top: bool = False) -> bool:
    plain = folder and "\0" not in folder and str(PurePosixPath(folder)) == folder and (top or folder != ".")
    return bool(plain) and not folder.startswith("/") and ".." not in PurePosixPath(folder).parts
