"""Which blobs each build, snapshot and release names; it follows from the other tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blob_holders",
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("checksum", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("holder", name="pk_blob_holders"),
    )
    op.create_table(
        "blob_references",
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("holder", "digest", name="pk_blob_references"),
    )


def downgrade() -> None:
    op.drop_table("blob_references")
    op.drop_table("blob_holders")
