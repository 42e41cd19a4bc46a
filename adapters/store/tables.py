"""The tables as queries see them. A change here needs a revision in ``versions``; a test compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text, UniqueConstraint, text

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

ANSWERED = text("state = 'answered'")
OPEN = text("outcome = ''")
UNSETTLED = text("money <> 'settled'")
POSITION = BigInteger().with_variant(Integer, "sqlite")

builds = Table(
    "builds",
    metadata,
    Column("build", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("ended", BigInteger, nullable=False),
    Column("damaged", Text, nullable=False),
    Index("ix_builds_started", "started"),
    Index("ix_builds_project_started", "project", "started"),
)

events = Table(
    "events",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("first_run", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("build", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Column("digest", Text, nullable=False),
    UniqueConstraint("first_run", "run", "sequence"),
    Index("ix_events_build_position", "build", "position"),
    sqlite_autoincrement=True,
)

numbers = Table(
    "numbers",
    metadata,
    Column("project", Text, primary_key=True),
    Column("last", Integer, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("build", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("fault", Text, nullable=False),
    Column("answer", Text),
    Column("value", Text),
    Column("problems", Text),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_micros", BigInteger),
    Column("project", Text, nullable=False, server_default=""),
    Column("task", Text, nullable=False, server_default=""),
    Column("user_name", Text, nullable=False, server_default=""),
    Column("phase", Text, nullable=False, server_default=""),
    Column("role", Text, nullable=False, server_default=""),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("at", BigInteger, nullable=False, server_default="0"),
    Column("day", Text, nullable=False, server_default=""),
    Column("bound", BigInteger),
    Column("money", Text, nullable=False, server_default="settled"),
    Column("settled", BigInteger, nullable=False, server_default="0"),
    Column("price", Integer, nullable=False, server_default="0"),
    Column("limits", Text, nullable=False, server_default="{}"),
    Column("pinned", Text, nullable=False, server_default="{}"),
    Column("warnings", Text, nullable=False, server_default="[]"),
    UniqueConstraint("key", "number"),
    Index("ix_calls_build_position", "build", "position"),
    Index("ix_calls_project_position", "project", "position"),
    Index("ix_calls_unsettled", "at", sqlite_where=UNSETTLED, postgresql_where=UNSETTLED),
    Index("uq_calls_answered", "key", unique=True, sqlite_where=ANSWERED, postgresql_where=ANSWERED),
    sqlite_autoincrement=True,
)

accounts = Table(
    "accounts",
    metadata,
    Column("account", Text, primary_key=True),
    Column("settled", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("unknown", BigInteger, nullable=False),
    Column("written_off", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

warned = Table(
    "warned",
    metadata,
    Column("account", Text, primary_key=True),
    Column("limit_micros", BigInteger, primary_key=True, autoincrement=False),
)

prices = Table(
    "prices",
    metadata,
    Column("model", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("input_micros", BigInteger, nullable=False),
    Column("output_micros", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
)

places = Table(
    "places",
    metadata,
    Column("project", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    Column("build", Text, nullable=False),
    Index("ix_places_build", "build"),
)

releases = Table(
    "releases",
    metadata,
    Column("project", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("saga", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Index("uq_releases_project_saga", "project", "saga", unique=True),
)

undo = Table(
    "undo",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),
    Column("build", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Index("ix_undo_open", "position", sqlite_where=OPEN, postgresql_where=OPEN),
    sqlite_autoincrement=True,
)

blob_holders = Table(
    "blob_holders",
    metadata,
    Column("holder", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("checksum", Text, nullable=False),
)

blob_references = Table(
    "blob_references",
    metadata,
    Column("holder", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("what", Text, nullable=False),
)
