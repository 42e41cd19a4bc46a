"""Fixtures that every part shares, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_asyncio
from temporalio.client import Client

from adapters.settings import Settings
from adapters.temporal.connect import Target, connect_to
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from tests.memory import write_to_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalServer:
    """The development server that all tests share; every test takes ids of its own.

    ``environment`` is what makes our processes use it.
    """

    address: str
    ui: str
    namespace: str
    log: Path
    environment: dict[str, str] = field(default_factory=dict)

    async def connect(self) -> Client:
        """A client of the running test's loop."""
        return await connect_to(Target(address=self.address, namespace=self.namespace, origin="the tests' server"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    """A real server, once a session, on free ports, in a folder of its own."""
    state = tmp_path_factory.mktemp("temporal")
    program = find_server(explicit=_named_server(), environment=os.environ)
    async with DevServer(ServerPlan(program=program, state=state, patience=60)) as server:
        yield TemporalServer(
            address=server.address,
            ui=server.ui,
            namespace=server.plan.namespace,
            log=server.plan.log,
            environment={"TEMPORAL_ADDRESS": server.address, **_no_profiles(state)},
        )


@pytest_asyncio.fixture
async def client(temporal: TemporalServer) -> Client:
    """Connected to the shared server, with the data converter of the product."""
    return await temporal.connect()


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    """``make_settings(temporal={…}, models={…})``: settings whose root and state are the test's own folder."""

    def make(**sections: Any) -> Settings:
        return Settings.model_validate({"root": tmp_path, **sections})

    return make


@pytest.fixture
def settings(make_settings: Callable[..., Settings]) -> Settings:
    """Settings with free ports and nothing else configured."""
    return make_settings(temporal={"port": 0, "ui_port": 0})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A small environment of our own: no developer's profile, key or TEMPORAL_* reaches a test."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), **_no_profiles(tmp_path)}


def _no_profiles(folder: Path) -> dict[str, str]:
    return {"TEMPORAL_CONFIG_FILE": str(folder / "no-profiles.toml")}


def _named_server() -> Path | None:
    named = os.environ.get("MENDWORK_TEMPORAL__SERVER")
    return Path(named) if named else None


def pytest_configure(config: pytest.Config) -> None:
    """In CI a skipped test is a failed one: what it needs was not installed."""
    write_to_memory()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would ours
    hypothesis.settings.register_profile("busy", deadline=None)  # a busy machine is slow, and nothing is wrong with it
    hypothesis.settings.load_profile("busy")
    if os.environ.get("MENDWORK_CI") == "1":
        config.pluginmanager.register(_NothingSkipped(), "nothing-skipped")


SLOWEST_FIRST = ("production", "chaos", "e2e", "workflows")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits longest begins first, so that at the end no process is left alone with it."""
    folders = Path(__file__).parent

    def turn(item: pytest.Item) -> int:
        folder = item.path.relative_to(folders).parts[0]
        return SLOWEST_FIRST.index(folder) if folder in SLOWEST_FIRST else len(SLOWEST_FIRST)

    items.sort(key=turn)  # stable: within a folder the order stays


class _NothingSkipped:
    """Turns skips, of tests and of whole files, and expected failures without a reason into failures."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        expected = getattr(report, "wasxfail", None)
        if report.skipped and not (expected or "").removeprefix("reason: ").strip():
            report.outcome = "failed"
            report.longrepr = f"skipped in CI: {item.nodeid}: {report.longrepr}"
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.skipped:
            report.outcome = "failed"
            report.longrepr = f"skipped in CI: {collector.nodeid}: {report.longrepr}"
        return report
