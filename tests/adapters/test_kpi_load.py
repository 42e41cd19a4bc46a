"""Synthetic load on described and on real services, and whose fault it is when nothing can be measured."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, replace

import httpx2
import pytest
import pytest_asyncio

from adapters.compliance.delivery.load import QUICK, LoadCompliance, Manner, Serve
from adapters.kpi import LOADS, http, open_load
from adapters.kpi.asking import MOST_BODY, fault_of
from adapters.kpi.memory import MemoryLoad, Service, open_memory
from adapters.kpi.orders import percentile
from domain.errors import TargetMissing, UnknownName
from domain.kpi.judging import NO_DATA, judge
from domain.kpi.policy import WatchPolicy
from domain.kpi.probe import Probe
from domain.ports.load import Load
from tests.adapters.kpi_services import Town


class TestMemory(LoadCompliance):
    @pytest.fixture
    def load(self) -> MemoryLoad:
        return open_memory()

    @pytest.fixture
    def serve(self, load: MemoryLoad) -> Serve:
        async def serve(manner: Manner) -> str:
            url = f"http://127.0.0.1:{8_000 + len(load.services)}"
            load.services[url] = Service(**asdict(manner))
            return url

        return serve

    async def test_one_that_nobody_can_ask_is_unmeasured(self, load: MemoryLoad) -> None:
        load.services["http://127.0.0.1"] = Service(unmeasured=True)
        arm = (await load.measure(replace(QUICK, candidate="http://127.0.0.1"))).candidate
        assert (arm.asked, arm.failed, arm.unmeasured, arm.healthy) == (0, 0, 20, True)


@pytest_asyncio.fixture
async def town() -> AsyncIterator[Town]:
    town = Town()
    yield town
    await town.close()


class TestHttp(LoadCompliance):
    @pytest.fixture
    def load(self) -> Load:
        return open_load()

    @pytest.fixture
    def serve(self, town: Town) -> Serve:
        return town.serve


class TestHowItAsks:
    """Over real sockets."""

    async def test_each_by_itself_and_never_another_than_it_was_told(self, town: Town) -> None:
        there, here = await town.serve(Manner()), await town.serve(Manner(status=302))
        probes = (Probe(path="/a?b=c%20d"), Probe(path="/ü"))
        await open_load().measure(replace(QUICK, candidate=there, baseline=f"{here}/", probes=probes))
        assert sorted(town[there].seen) == sorted(town[here].seen) == ["/%C3%BC"] * 10 + ["/a?b=c%20d"] * 10

    async def test_a_service_that_never_answers_gets_every_request_at_its_time(self, town: Town) -> None:
        """And at most so many at once; those that find no place in time are the service's fault."""
        url = await town.serve(Manner(manner="timeout"))
        arm = (await open_load().measure(replace(QUICK, candidate=url, rate=1_200.0, timeout=1.0))).candidate
        assert arm.faults.get("timeout", 0) == arm.asked
        assert arm.asked + arm.unmeasured == 600
        assert town[url].most_open <= http.MOST_AT_ONCE + 1  # a health check beside them
        assert arm.asked > http.MOST_AT_ONCE or arm.unmeasured > 0

    async def test_a_drip_does_not_outlast_its_time(self, town: Town) -> None:
        url = await town.serve(Manner())
        town[url].drips = True
        async with asyncio.timeout(60):
            arm = (await open_load().measure(replace(QUICK, candidate=url, timeout=0.2))).candidate
        assert arm.asked + arm.unmeasured == 20
        assert arm.faults.get("timeout", 0) == arm.asked > 0

    async def test_a_window_ends_early_when_the_candidate_is_down(self, town: Town) -> None:
        bad, good = await town.serve(Manner(health=(500,) * 99)), await town.serve(Manner())
        order = replace(QUICK, seconds=30.0, candidate=bad, baseline=good)
        window = await open_load().measure(order)
        assert not window.candidate.healthy
        assert window.seconds < 30.0
        assert window.candidate.asked < 1_200

    async def test_a_baseline_that_is_down_ends_nothing(self, town: Town) -> None:
        good, bad = await town.serve(Manner()), await town.serve(Manner(health=(500,) * 99))
        window = await open_load().measure(replace(QUICK, seconds=1.0, candidate=good, baseline=bad))
        assert window.candidate.asked + window.candidate.unmeasured == 40
        assert window.baseline is not None
        assert not window.baseline.healthy

    async def test_a_long_body_is_searched_at_its_beginning_only(self, town: Town) -> None:
        late = await town.serve(Manner(body="x" * 2 * MOST_BODY + "well"))
        early = await town.serve(Manner(body="well" + "x" * 2 * MOST_BODY))
        order = replace(QUICK, candidate=late, baseline=early, rate=4.0, probes=(Probe(contains="well"),))
        window = await open_load().measure(order)
        assert window.baseline is not None
        assert (dict(window.candidate.faults), window.baseline.failed) == ({"content": 2}, 0)

    async def test_a_cancelled_measurement_leaves_no_connection(self, town: Town) -> None:
        url = await town.serve(Manner(manner="timeout"))
        measuring = asyncio.create_task(open_load().measure(replace(QUICK, candidate=url, seconds=60.0)))
        async with asyncio.timeout(60):
            while town[url].open < 5:  # noqa: ASYNC110 - the condition lies in the other side's sockets
                await asyncio.sleep(0.01)
            measuring.cancel()
            with pytest.raises(asyncio.CancelledError):
                await measuring
            while town[url].open:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


class TestOurOwnFailures:
    """They say nothing of the service."""

    async def test_a_process_that_was_held_up_has_measured_nothing(self, town: Town) -> None:
        url = await town.serve(Manner(ms=50))
        asyncio.get_running_loop().call_later(0.2, time.sleep, 2.5)
        order = replace(QUICK, candidate=url, seconds=1.0, timeout=1.0)
        window = await open_load().measure(order)
        arm = window.candidate
        assert arm.unmeasured > 0
        assert arm.failed == 0
        assert arm.asked + arm.unmeasured == 40
        assert len(town[url].seen) < 20  # what is that late is not sent in one burst
        assert arm.healthy
        assert judge([window], WatchPolicy(seconds=1.0, window=1.0)).kind != "fail"

    def test_a_process_without_sockets_has_measured_nothing(self) -> None:
        """In a process of its own, whose files are used up while its services are fine."""
        ran = subprocess.run([sys.executable, "-c", USED_UP], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.split() == ["0", "0", "20", "True", NO_DATA.replace(" ", "-")]

    @pytest.mark.parametrize(
        ("cause", "kind"),
        [
            (OSError(errno.EADDRNOTAVAIL, "no port is left"), "unmeasured"),
            (ExceptionGroup("both addresses", [OSError(errno.EMFILE, "x"), OSError(errno.ENOENT, "x")]), "unmeasured"),
            (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "refused"),
            (OSError(errno.ENETUNREACH, "x"), "refused"),
            (TimeoutError(errno.ETIMEDOUT, "x"), "timeout"),
        ],
    )
    def test_a_connection_that_fails_is_told_by_its_cause(self, cause: Exception, kind: str) -> None:
        error = httpx2.ConnectError("all connection attempts failed")
        error.__cause__ = cause
        cause.__context__ = error  # a circle ends too
        assert fault_of(error) == kind

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (httpx2.ReadError("x"), "reset"),
            (httpx2.RemoteProtocolError("no answer"), "reset"),
            (httpx2.ReadTimeout("x"), "timeout"),
            (httpx2.LocalProtocolError("ours"), "unmeasured"),
            (ConnectionResetError(errno.ECONNRESET, "x"), "reset"),
        ],
    )
    def test_a_request_that_fails_is_told_by_its_kind(self, error: Exception, kind: str) -> None:
        assert fault_of(error) == kind


USED_UP = """
import asyncio, os, resource
from dataclasses import replace
from adapters.compliance.delivery.load import QUICK, Manner
from adapters.kpi import open_load
from domain.kpi.judging import judge
from domain.kpi.policy import WatchPolicy
from tests.adapters.kpi_services import Town

async def main():
    town = Town()
    url = await town.serve(Manner())
    order = replace(QUICK, candidate=url)
    assert (await open_load().measure(order)).candidate.asked == 20  # everything is imported now
    held = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 1, held + 1))
    window = await open_load().measure(order)
    arm = window.candidate
    verdict = judge([window], WatchPolicy(seconds=0.5, window=0.5))
    print(arm.asked, arm.failed, arm.unmeasured, arm.healthy, verdict.kind.replace(" ", "-"))

asyncio.run(main())
"""


def test_an_unknown_load_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="known: http, memory"):
        open_load("prometheus")


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOADS, "http", "no_such_client:open_http")
    with pytest.raises(TargetMissing, match="uv sync --extra deploy"):
        open_load()


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0.0), ([7.0], 0.95, 7.0), ([3.0, 1.0, 2.0], 0.5, 2.0), (list(map(float, range(1, 101))), 0.95, 95.0)],
)
def test_percentiles_are_measured_values(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected
