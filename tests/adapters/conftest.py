"""Fixtures of several adapters' tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.postgres import TEMPLATE, Cluster, running_cluster
from tests.s3 import S3, serving_s3


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One PostgreSQL for all tests, with a template database at the head revision."""
    with running_cluster() as cluster:
        with ThreadPoolExecutor(1) as thread:  # an async test may be the first to ask, inside its own loop
            thread.submit(asyncio.run, _migrate(cluster.create(name=TEMPLATE))).result()
        yield cluster


async def _migrate(url: str) -> None:
    from adapters.store import open_store

    async with await open_store(url):
        pass


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """An S3 server of the test file's own."""
    with serving_s3() as server:
        yield server


@pytest.fixture
def postgres_url(cluster: Cluster) -> str:
    """A database of the test's own, with Mendwork's tables."""
    return cluster.create(template=TEMPLATE)
