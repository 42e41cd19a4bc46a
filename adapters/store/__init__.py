"""Stores by the scheme of their URL."""

from adapters.registry import resolve
from domain.ports.store import Store

STORES = {
    "memory": "adapters.store.memory:open_memory",
    "postgresql": "adapters.store.sql:open_sql",
    "sqlite": "adapters.store.sql:open_sql",
}


async def open_store(url: str) -> Store:
    """Connect and bring the tables up to date, safely beside other processes that do the same.

    Raises UnknownName for a scheme, InvalidInput for the rest of the URL and for a database that does not exist,
    CredentialsRefused, StoreUnavailable, ResourceShort.
    """
    scheme = url.partition(":")[0].partition("+")[0]
    store: Store = await resolve(STORES, "store", scheme)(url)
    return store
