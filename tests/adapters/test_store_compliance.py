"""The store's suites on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.compliance.calls import CallsCompliance
from adapters.compliance.money.ledger import LedgerCompliance
from adapters.compliance.money.places import PlacesCompliance
from adapters.compliance.money.sums import SumsCompliance
from adapters.compliance.store import BuildsCompliance, EventLogCompliance, UndoCompliance
from adapters.store import open_store
from domain.ports.store import Store


class MoneyCompliance(LedgerCompliance, SumsCompliance, PlacesCompliance):
    """What is counted beside the calls."""


class StoreCompliance(EventLogCompliance, BuildsCompliance, CallsCompliance, UndoCompliance, MoneyCompliance):
    """All six ports on one store."""


class TestMemory(StoreCompliance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with await open_store("memory:") as store:
            yield store


class TestSqlite(StoreCompliance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with await open_store(f"sqlite:///{tmp_path / 'mendwork.db'}") as store:
            yield store


class TestPostgres(StoreCompliance):
    @pytest.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[Store]:
        async with await open_store(postgres_url) as store:
            yield store
