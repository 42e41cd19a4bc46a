"""What PostgreSQL says at the door: a wrong password or no such database is no outage, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from adapters.cli.doctor import store as doctor_of
from adapters.cli.doctor.configured import admit
from adapters.cli.exits import AUTHENTICATION, USAGE
from adapters.compliance.store import whole_build
from adapters.store import open_store
from adapters.store.migrate import HEAD
from domain.errors import CredentialsRefused, InvalidInput, MendworkError, StoreUnavailable
from tests.forks import run_command
from tests.postgres import Cluster, running_cluster

PASSWORD, WRONG = "hunter2-right", "hunter2-wrong"
ROLES = f"""
CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE nologin;
CREATE ROLE outside LOGIN;
CREATE ROLE plain LOGIN;
CREATE DATABASE private;
REVOKE CONNECT ON DATABASE private FROM public;
CREATE DATABASE shown;
"""
DOORS = "local all locked scram-sha-256\nlocal all outside reject\n"


def locked_out(cluster: Cluster, *, user: str, password: str) -> bool:
    """Whether the door is shut already: a reload takes a moment."""
    try:
        psycopg.connect(host=str(cluster.folder), dbname="postgres", user=user, password=password).close()
    except psycopg.OperationalError:
        return True
    return False


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A cluster that asks for passwords, and lets some in and others not."""
    with running_cluster() as cluster:
        for statement in ROLES.strip().splitlines():
            cluster.execute(statement)
        cluster.execute("GRANT ALL ON SCHEMA public TO locked", database="shown")
        doors = cluster.folder / "data" / "pg_hba.conf"
        doors.write_text(DOORS + doors.read_text())
        cluster.control("reload")
        until = time.monotonic() + 30
        while not locked_out(cluster, user="locked", password=WRONG):
            assert time.monotonic() < until, "the reload was heard"
            time.sleep(0.02)
        yield cluster


def url(cluster: Cluster, user: str, database: str) -> str:
    return f"postgresql://{user}@/{database}?host={cluster.folder}"


@pytest.mark.parametrize(
    ("user", "database", "kind", "sentence"),
    [
        (f"locked:{WRONG}", "postgres", CredentialsRefused, 'password authentication failed for user "locked"'),
        ("locked", "postgres", CredentialsRefused, "no password supplied"),
        ("ghost", "postgres", CredentialsRefused, 'role "ghost" does not exist'),
        ("nologin", "postgres", CredentialsRefused, 'role "nologin" is not permitted to log in'),
        ("outside", "postgres", CredentialsRefused, "pg_hba.conf rejects connection"),
        ("plain", "private", CredentialsRefused, 'permission denied for database "private"'),
        ("plain", "shown", CredentialsRefused, "permission denied for schema public (42501)"),
        ("plain", "ghost", InvalidInput, 'database "ghost" does not exist'),
        (f"locked:{PASSWORD}", "ghost", InvalidInput, 'database "ghost" does not exist'),
    ],
)
async def test_who_is_not_let_in_is_told_so_at_once_and_without_the_password(
    guarded: Cluster, user: str, database: str, kind: type[MendworkError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        await open_store(url(guarded, user, database))
    assert type(caught.value) is kind
    assert sentence in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("user", "database", "code"), [(f"locked:{WRONG}", "postgres", AUTHENTICATION), ("plain", "ghost", USAGE)]
)
def test_a_command_ends_with_the_code_for_it_and_one_sentence(
    guarded: Cluster, tmp_path: Path, user: str, database: str, code: int
) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MENDWORK_STORE": url(guarded, user, database)}
    (tmp_path / "mendwork.toml").write_text("")
    ran = run_command(["status"], folder=tmp_path, environment=environment)
    assert ran.code == code, ran.err
    assert (ran.out, len(ran.err.splitlines())) == ("", 1)
    assert "hunter2" not in ran.err


async def test_a_password_that_is_changed_under_a_running_store_is_an_outage_that_ends(guarded: Cluster) -> None:
    """What runs fails nothing for it: the same password counts again, or the process starts with the new one."""
    address = f"{url(guarded, f'locked:{PASSWORD}', 'shown')}&pool_size=1&pool_overflow=0"
    async with await open_store(address) as store:
        await store.events.append(whole_build()[:2])
        try:
            await asyncio.to_thread(guarded.execute, f"ALTER ROLE locked PASSWORD '{WRONG}'")
            await asyncio.to_thread(guarded.execute, CUT)
            with pytest.raises(StoreUnavailable, match="password authentication failed"):
                await store.events.append(whole_build())
        finally:
            await asyncio.to_thread(guarded.execute, f"ALTER ROLE locked PASSWORD '{PASSWORD}'")
        assert await store.events.append(whole_build()) == 3
        assert [each.sequence for _, each in await store.events.read("build-a-1")] == [1, 2, 3, 4, 5]


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'"


async def test_a_server_that_is_away_stays_an_outage(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await open_store(f"postgresql://ann@/mendwork?host={tmp_path}")


async def test_the_doctor_looks_at_it_as_the_store_does(
    guarded: Cluster, tmp_path: Path, environment: dict[str, str]
) -> None:
    """With whatever the URL says of the pool, which libpq would refuse."""
    address = f"{url(guarded, f'locked:{PASSWORD}', 'shown')}&pool_size=2"
    async with await open_store(address):
        pass
    said = {
        address: ("ok", f"at migration {HEAD}"),
        url(guarded, f"locked:{WRONG}", "shown"): ("broken", "password authentication failed"),
        url(guarded, "plain", "ghost"): ("broken", 'database "ghost" does not exist'),
    }
    for named, (state, detail) in said.items():
        found = await doctor_of.store(admit(tmp_path, {**environment, "MENDWORK_STORE": named})[0])
        assert [(each.state, detail in each.detail, bool(each.cure)) for each in found] == [
            (state, True, state != "ok")
        ]
        assert "hunter2" not in str(found)
