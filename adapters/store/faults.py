"""Drivers' errors as ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from domain.errors import Defect, MendworkError, ResourceShort, StoreUnavailable

_SQLITE_SHORT = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}
_SQLITE_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_POSTGRES_SHORT = ("53100", "53200")
_POSTGRES_LATER = ("08", "25006", "25P03", "25P04", "40", "53", "55P03", "57", "58")


@contextmanager
def translated(store: str) -> Iterator[None]:
    """Raise StoreUnavailable, ResourceShort or Defect instead of what SQLAlchemy raises; ``store`` names it to people.

    The original is not chained: its text has statements, and on PostgreSQL the values of rows.
    """
    try:
        yield
    except exc.SQLAlchemyError as error:
        raise _ours(store, error) from None


def sqlite_error(store: str, error: sqlite3.Error) -> MendworkError:
    """The same for an error of SQLite itself."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    why = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
    if code & 0xFF in _SQLITE_SHORT or code == sqlite3.SQLITE_IOERR_WRITE:
        return ResourceShort(f"the store {store} has no room to write: {why}")
    if code & 0xFF in _SQLITE_BROKEN:
        return Defect(f"the store {store} is damaged: {why}")
    if isinstance(error, sqlite3.OperationalError) and code & 0xFF != sqlite3.SQLITE_ERROR:
        return StoreUnavailable(f"the store {store} cannot be used now: {why}")
    return Defect(f"the store {store} refused a statement: {why}")


def _ours(store: str, error: exc.SQLAlchemyError) -> MendworkError:
    driver = error.orig if isinstance(error, exc.DBAPIError) else None
    if isinstance(driver, sqlite3.Error):
        return sqlite_error(store, driver)
    state = getattr(driver, "sqlstate", None)
    if isinstance(state, str):
        return _postgres_error(store, state, driver)
    if isinstance(error, exc.TimeoutError):
        return StoreUnavailable(f"all connections of this process to the store {store} are in use: see pool_size")
    if isinstance(error, (exc.InterfaceError, exc.OperationalError)):
        return StoreUnavailable(f"the store {store} cannot be reached: {_reason(driver or error)}")
    return Defect(f"the store {store} refused a statement: {type(driver or error).__name__}")


def _postgres_error(store: str, state: str, driver: object) -> MendworkError:
    primary = getattr(getattr(driver, "diag", None), "message_primary", None) or type(driver).__name__
    if state in _POSTGRES_SHORT:
        return ResourceShort(f"the store {store} has no room: {primary} ({state})")
    if state.startswith(_POSTGRES_LATER):
        return StoreUnavailable(f"the store {store} cannot be used now: {primary} ({state})")
    return Defect(f"the store {store} refused a statement: {primary} ({state})")


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
