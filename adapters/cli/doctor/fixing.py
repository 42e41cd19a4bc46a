"""What ``mendwork doctor --fix`` may change: a namespace that lacks, its search attributes, an older store, the state
folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from adapters.cli.doctor.finding import Patient, aside
from adapters.cli.doctor.server import PATIENCE, server_of
from adapters.cli.doctor.store import store as look
from domain.errors import MendworkError

WITHIN_SECONDS = 9.0


async def fix(patient: Patient) -> Sequence[str]:
    """Each thing that was done or could not be done, in a line."""
    lines: list[str] = []
    for step in (_close_folder, _namespace, _attributes, _migrate):
        try:
            lines += await step(patient)
        except MendworkError as error:
            lines.append(f"not fixed: {error}")
        except OSError as error:
            lines.append(f"not fixed: {error.filename or patient.state}: {error.strerror}")
    return lines


async def _namespace(patient: Patient) -> Sequence[str]:
    from adapters.cli.doctor.namespaces import make

    try:
        return await make(patient)
    except TimeoutError:
        return ["not fixed: the server does not know the namespace that was made; look again in a minute"]


async def _attributes(patient: Patient) -> Sequence[str]:
    from adapters.temporal.attributes import ensure_attributes
    from adapters.temporal.connect import connect_to

    target = server_of(patient)
    if target is None:
        return ()
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            added = await ensure_attributes(await connect_to(target, patience=PATIENCE))
    except TimeoutError:
        return [f"not fixed: the server at {target.address} does not answer within {WITHIN_SECONDS:g} s"]
    return [f"fixed: search attributes {', '.join(added)} added"] if added else ()


async def _migrate(patient: Patient) -> Sequence[str]:
    from adapters.store import open_store

    found = await look(patient)
    if patient.settings is None or not any(each.state == "missing" for each in found):
        return ()
    async with await open_store(patient.settings.store_url):
        return ["fixed: the store is at this version's migration"]


async def _close_folder(patient: Patient) -> Sequence[str]:
    """The folder to its owner's writing only, the store to his eyes only."""
    return await aside(lambda: list(_closed(patient)))


def _closed(patient: Patient) -> Iterator[str]:
    for place, bits in ((patient.state, 0o022), (patient.state / "mendwork.db", 0o077)):
        if place.exists() and place.stat().st_mode & bits:
            place.chmod(place.stat().st_mode & 0o777 & ~bits)
            yield f"fixed: {place} is closed to others"
