"""Bringing a database to this version's tables, once, whoever comes first."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from adapters.store.database import Database
from domain.errors import InvalidInput

HEAD = "0004"


async def upgrade(database: Database) -> None:
    """Run the revisions that are missing, in one transaction under a lock, so that many processes may start at once.

    Raises InvalidInput when a later version of Mendwork wrote the database.
    """
    if await database.read(lambda connection: connection.run_sync(revision)) != HEAD:
        await database.write("migrations", lambda connection: connection.run_sync(_upgrade))


def revision(connection: Connection) -> str | None:
    """The revision that the tables are at; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _upgrade(connection: Connection) -> None:
    from alembic import command  # a second to import, and needed once in a database's life
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    here = Path(__file__).parent
    config.set_main_option("script_location", str(here / "migrations"))
    config.set_main_option("version_locations", str(here / "versions"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    at = revision(connection)
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if at is not None and at not in known:
        raise InvalidInput(f"the store is at revision {at!r}, written by another Mendwork; this one knows {known}")
    command.upgrade(config, "head")
