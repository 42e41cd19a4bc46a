"""The store: looked at without making or migrating it."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import exists

from adapters.cli.doctor.finding import Finding, Patient
from domain.errors import InvalidInput, MendworkError

PATIENCE = 4
_PURPOSE = "the event log, money and undo records"


async def store(patient: Patient) -> Sequence[Finding]:
    """Whether it can be reached, and whether its tables are this version's."""
    if patient.settings is None:
        return []
    from adapters.store.migrate import HEAD

    try:
        name, at = await _revision(patient.settings.store_url)
    except MendworkError as error:
        cure = "mendwork config get store --show-origin"
        return [Finding(name="store", state="broken", purpose=_PURPOSE, detail=str(error), cure=cure)]
    if at == HEAD:
        return [Finding(name="store", state="ok", purpose=_PURPOSE, detail=f"{name} at migration {at}")]
    if at is None:
        told = f"{name} is empty; the first start makes its tables"
        return [Finding(name="store", state="ok", purpose=_PURPOSE, detail=told)]
    newer = at > HEAD
    told = f"{name} is at migration {at}, this version at {HEAD}"
    cure = "git -C MENDWORK pull && make setup" if newer else "mendwork doctor --fix"
    return [Finding(name="store", state="broken" if newer else "missing", purpose=_PURPOSE, detail=told, cure=cure)]


async def _revision(url: str) -> tuple[str, str | None]:
    """The store's name without its password, and its revision; None where there are no tables yet."""
    from sqlalchemy import exc, make_url
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from adapters.store.faults import translated
    from adapters.store.migrate import revision
    from adapters.store.pool import pool_of
    from adapters.store.sql import DRIVERS

    try:
        parsed = make_url(url)
        parsed, _ = pool_of(parsed.set(drivername=DRIVERS[parsed.get_backend_name()]))
    except (exc.ArgumentError, KeyError, ValueError):
        raise InvalidInput("store is no URL like sqlite:////folder/file.db or postgresql://user@host/name") from None
    name = parsed.render_as_string(hide_password=True)
    embedded = parsed.get_backend_name() == "sqlite"
    if embedded and not _is_there(parsed.database or ""):
        return name, None  # a connection would make the file
    arguments = {"timeout": PATIENCE} if embedded else {"connect_timeout": PATIENCE}
    engine = create_async_engine(parsed, hide_parameters=True, poolclass=NullPool, connect_args=arguments)
    try:
        with translated(name):
            async with engine.connect() as connection:
                return name, await connection.run_sync(revision)
    finally:
        await engine.dispose()


def _is_there(file: str) -> bool:
    return exists(file)
