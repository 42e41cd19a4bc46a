"""Money: what a call may cost and did, the accounts that it is counted on, prices; places of a project's tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXTS = {"project": "", "task": "", "user_name": "", "phase": "", "role": "", "day": "", "money": "settled"}
JSONS = {"limits": "{}", "pinned": "{}", "warnings": "[]"}
NUMBERS = {"attempt": sa.Integer, "at": sa.BigInteger, "settled": sa.BigInteger, "price": sa.Integer}


def upgrade() -> None:
    _calls()
    _accounts()
    _places()
    _earlier_calls()


def downgrade() -> None:
    for table in ("places", "prices", "warned", "accounts"):
        op.drop_table(table)
    for index in ("ix_calls_unsettled", "ix_calls_project_position"):
        op.drop_index(index, "calls")
    for column in ("bound", *TEXTS, *JSONS, *NUMBERS):
        op.drop_column("calls", column)


def _calls() -> None:
    for column, default in (TEXTS | JSONS).items():
        op.add_column("calls", sa.Column(column, sa.Text, nullable=False, server_default=default))
    for column, kind in NUMBERS.items():
        op.add_column("calls", sa.Column(column, kind, nullable=False, server_default="0"))
    op.add_column("calls", sa.Column("bound", sa.BigInteger))
    op.create_index("ix_calls_project_position", "calls", ["project", "position"])
    unsettled = sa.text("money <> 'settled'")
    op.create_index("ix_calls_unsettled", "calls", ["at"], sqlite_where=unsettled, postgresql_where=unsettled)


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("account", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("settled", "held", "unknown", "written_off")),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("account", name="pk_accounts"),
    )
    op.create_table(
        "warned",
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("limit_micros", sa.BigInteger, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("account", "limit_micros", name="pk_warned"),
    )
    op.create_table(
        "prices",
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("input_micros", sa.BigInteger, nullable=False),
        sa.Column("output_micros", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("model", "version", name="pk_prices"),
    )


def _places() -> None:
    op.create_table(
        "places",
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("build", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "holder", name="pk_places"),
    )
    op.create_index("ix_places_build", "places", ["build"])


def _earlier_calls() -> None:
    """Calls of the version before were settled by what they cost, and held nothing."""
    op.execute("UPDATE calls SET settled = COALESCE(cost_micros, 0)")
    project = "SELECT builds.project FROM builds WHERE builds.build = calls.build"
    op.execute(f"UPDATE calls SET project = COALESCE(({project}), '')")  # noqa: S608 - a text of our own
    for account in ("build", "project"):
        sums = f"SELECT '{account}:' || {account}, SUM(settled), 0, 0, 0, COUNT(*) FROM calls"  # noqa: S608 - as above
        op.execute(f"INSERT INTO accounts {sums} WHERE {account} <> '' GROUP BY {account}")
