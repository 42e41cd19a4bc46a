"""First tables: the event log, builds and their numbers, calls of models, undo records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _builds()
    _events()
    _calls()
    _undo()


def downgrade() -> None:
    for table in ("undo", "calls", "events", "numbers", "builds"):
        op.drop_table(table)


def _builds() -> None:
    op.create_table(
        "builds",
        sa.Column("build", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger, nullable=False),
        sa.Column("damaged", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("build", name="pk_builds"),
    )
    op.create_index("ix_builds_started", "builds", ["started"])
    op.create_index("ix_builds_project_started", "builds", ["project", "started"])
    op.create_table(
        "numbers",
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("project", name="pk_numbers"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        sa.Column("first_run", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("build", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.UniqueConstraint("first_run", "run", "sequence", name="uq_events_first_run_run_sequence"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_build_position", "events", ["build", "position"])


def _calls() -> None:
    op.create_table(
        "calls",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("build", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("fault", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("value", sa.Text),
        sa.Column("problems", sa.Text),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cost_micros", sa.BigInteger),
        sa.UniqueConstraint("key", "number", name="uq_calls_key_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_calls_build_position", "calls", ["build", "position"])
    answered = sa.text("state = 'answered'")
    op.create_index(
        "uq_calls_answered", "calls", ["key"], unique=True, sqlite_where=answered, postgresql_where=answered
    )


def _undo() -> None:
    op.create_table(
        "undo",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("build", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.UniqueConstraint("key", name="uq_undo_key"),
        sqlite_autoincrement=True,
    )
    still_open = sa.text("outcome = ''")
    op.create_index("ix_undo_open", "undo", ["position"], sqlite_where=still_open, postgresql_where=still_open)
