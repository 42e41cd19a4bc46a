"""Releases: their numbers, whose they are, and what became of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "releases",
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("saga", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "number", name="pk_releases"),
    )
    op.create_index("uq_releases_project_saga", "releases", ["project", "saga"], unique=True)


def downgrade() -> None:
    op.drop_table("releases")
