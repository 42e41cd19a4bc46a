"""Drivers' errors as ours."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from domain.errors import CredentialsRefused, Defect, InvalidInput, MendworkError, ResourceShort, StoreUnavailable

_SQLITE_SHORT = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}
_SQLITE_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_POSTGRES_SHORT = ("53100", "53200")
_POSTGRES_LATER = ("08", "25006", "25P03", "25P04", "40", "53", "55P03", "57", "58")
_POSTGRES_FORBIDDEN = ("28", "42501")
_SHUT_OUT = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|pg_hba\.conf rejects"
    r'|permission denied for database|role ".*" (?:does not exist|is not permitted to log in)'
)
"""While a connection is made libpq hands on the server's words and no code. In another language than English they are
not known: then the store is unavailable, which is tried again in vain and told with the same words."""
_MISTAKEN = re.compile(r'database ".*" does not exist|configuration parameter|invalid (?:value for|connection option)')


@contextmanager
def translated(store: str, *, admitted: bool = False) -> Iterator[None]:
    """Raise one of our errors instead of what SQLAlchemy raises; ``store`` names it to people.

    CredentialsRefused and InvalidInput (no such database) are for who starts something. Once the store was used
    (``admitted``) that is StoreUnavailable too: somebody changes it, and what runs has to outlast that.
    The original is not chained: its text has statements, and on PostgreSQL the values of rows.
    """
    try:
        yield
    except exc.SQLAlchemyError as error:
        found = _ours(store, error)
        if admitted and isinstance(found, (CredentialsRefused, InvalidInput)):
            found = StoreUnavailable(str(found))
        raise found from None


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
        return _not_connected(store, driver or error)
    return Defect(f"the store {store} refused a statement: {type(driver or error).__name__}")


def _postgres_error(store: str, state: str, driver: object) -> MendworkError:
    primary = getattr(getattr(driver, "diag", None), "message_primary", None) or type(driver).__name__
    if state in _POSTGRES_SHORT:
        return ResourceShort(f"the store {store} has no room: {primary} ({state})")
    if state.startswith(_POSTGRES_FORBIDDEN):
        return CredentialsRefused(f"the store {store} does not let this user do that: {primary} ({state})")
    if state.startswith(_POSTGRES_LATER):
        return StoreUnavailable(f"the store {store} cannot be used now: {primary} ({state})")
    return Defect(f"the store {store} refused a statement: {primary} ({state})")


def _not_connected(store: str, error: BaseException) -> MendworkError:
    said = str(error)
    for pattern, kind, sentence in _REFUSALS:
        line = next((line for line in said.splitlines() if pattern.search(line)), "")
        if line:
            words = line.rpartition("FATAL: ")[2].rpartition("failed: ")[2]
            return kind(f"the store {store} {sentence}: {words.strip()[:200]}")
    return StoreUnavailable(f"the store {store} cannot be reached: {_reason(error)}")


_REFUSALS: tuple[tuple[re.Pattern[str], type[MendworkError], str], ...] = (
    (_SHUT_OUT, CredentialsRefused, "refuses its user or password"),
    (_MISTAKEN, InvalidInput, "is not there as it is named"),
)


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
