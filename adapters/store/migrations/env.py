"""What alembic runs: the revisions, on the connection and in the transaction of ``migrate.upgrade``."""

from __future__ import annotations

from alembic import context

from adapters.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
