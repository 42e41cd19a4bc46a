"""Records histories for the replay test: ``python -m tests.replay.record``, before a release.

Each scenario runs on a real server with the faked worlds of ``tests.workflows``; its sagas' histories go to the folder
of the running version, which is made afresh. The folder of a release is refused: see ``tests.replay.seal``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client

from adapters.temporal.connect import Target, connect_to
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from tests.replay import builds, deliveries, keeping
from tests.replay.shelf import SHELF, Released, Shelf, running_version
from tests.replay.writing import Writer


async def record_all(client: Client, writer: Writer) -> None:
    """Run every scenario."""
    for name in builds.SCENARIOS:
        await builds.record(client, name, writer)
        sys.stderr.write(f"{name} recorded\n")
    await deliveries.record(client, writer)
    sys.stderr.write("deliveries recorded\n")
    await keeping.record(client, writer)
    sys.stderr.write("sweeping and housekeeping recorded\n")


def replace_folder(shelf: Shelf, version: str, recorded: Path) -> None:
    """Put what was recorded in the place of what was there. Raises Released."""
    shelf.refuse_released(version)
    folder = shelf.root / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in recorded.glob("*.json"):
        shutil.copy(path, folder)


async def main() -> None:
    """Record the running version whole, or not at all."""
    version = running_version()
    SHELF.refuse_released(version)
    logging.disable(logging.ERROR)  # the scenarios' faults, which are wanted
    program = find_server(explicit=None, environment=os.environ)
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryDirectory() as recorded:
        async with DevServer(ServerPlan(program=program, state=Path(state))) as server:
            target = Target(address=server.address, namespace="default", origin="recording")
            await record_all(await connect_to(target), Writer(Path(recorded)))
        replace_folder(SHELF, version, Path(recorded))
    sys.stderr.write(f"{len(SHELF.histories(version))} histories of {version}\n")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except Released as error:
        sys.exit(str(error))
