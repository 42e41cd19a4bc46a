"""What every load must do. Subclass with a fixture ``load``, and a fixture ``serve`` that makes a service behave in a
manner and gives its base URL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from domain.errors import InvalidInput
from domain.kpi.probe import Probe
from domain.ports.load import Load, LoadOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a service answers: ``status`` and ``body`` after ``ms``, or not: ``manner`` is "refused", "reset" or
    "timeout". Every ``wrong_every``-th request gets a 500 (0: none). ``health`` are the statuses of its first checks
    of ``/health``; later ones are answered as requests are."""

    status: int = 200
    body: str = "all is well"
    ms: float = 1.0
    manner: str = ""
    wrong_every: int = 0
    health: tuple[int, ...] = ()


Serve = Callable[[Manner], Awaitable[str]]

QUICK = LoadOrder(
    number=1,
    candidate="",
    baseline="",
    health=Probe(path="/health"),
    probes=(Probe(),),
    rate=40.0,
    seconds=0.5,
    timeout=5.0,
)
"""Twenty requests to each in half a second."""


class LoadCompliance:
    async def test_both_are_asked_as_often_as_ordered(self, load: Load, serve: Serve) -> None:
        window = await load.measure(
            replace(QUICK, number=7, candidate=await serve(Manner()), baseline=await serve(Manner(body="older")))
        )
        assert (window.number, window.seconds) == (7, 0.5)
        assert window.baseline is not None
        for arm in (window.candidate, window.baseline):
            assert (arm.asked, arm.failed, arm.unmeasured, arm.healthy, dict(arm.faults)) == (20, 0, 0, True, {})
            assert 0.0 < arm.p50 <= arm.p95

    async def test_there_need_be_no_baseline(self, load: Load, serve: Serve) -> None:
        window = await load.measure(replace(QUICK, candidate=await serve(Manner())))
        assert window.baseline is None
        assert window.candidate.asked == 20

    async def test_failures_of_one_are_not_the_others(self, load: Load, serve: Serve) -> None:
        order = replace(QUICK, candidate=await serve(Manner(wrong_every=4)), baseline=await serve(Manner()))
        window = await load.measure(order)
        assert window.baseline is not None
        assert (window.candidate.failed, window.baseline.failed) == (5, 0)
        assert dict(window.candidate.faults) == {"status": 5}

    @pytest.mark.parametrize(
        ("manner", "kind"),
        [
            (Manner(status=404), "status"),
            (Manner(status=302), "status"),
            (Manner(body="an error page"), "content"),
            (Manner(manner="refused"), "refused"),
            (Manner(manner="reset"), "reset"),
        ],
        ids=["status", "redirect", "content", "refused", "reset"],
    )
    async def test_every_kind_of_failure_is_told(self, load: Load, serve: Serve, manner: Manner, kind: str) -> None:
        order = replace(QUICK, candidate=await serve(manner), probes=(Probe(contains="well"),))
        arm = (await load.measure(order)).candidate
        assert dict(arm.faults) == {kind: arm.failed}
        assert arm.failed == arm.asked > 0
        assert arm.unmeasured == 0

    async def test_a_service_that_never_answers_times_out(self, load: Load, serve: Serve) -> None:
        async with asyncio.timeout(30):
            window = await load.measure(replace(QUICK, candidate=await serve(Manner(manner="timeout")), timeout=0.3))
        arm = window.candidate
        assert arm.asked + arm.unmeasured == 20
        assert dict(arm.faults) == {"timeout": arm.asked}
        assert (arm.p50, arm.p95) == (0.0, 0.0)

    async def test_a_slow_service_gets_no_less_load(self, load: Load, serve: Serve) -> None:
        order = replace(QUICK, candidate=await serve(Manner(ms=400)), baseline=await serve(Manner()))
        window = await load.measure(order)
        assert window.baseline is not None
        assert [arm.asked + arm.unmeasured for arm in (window.candidate, window.baseline)] == [20, 20]
        assert window.candidate.p50 >= 400 > window.baseline.p50

    async def test_a_health_check_that_stays_down_is_seen(self, load: Load, serve: Serve) -> None:
        order = replace(
            QUICK, seconds=2.0, candidate=await serve(Manner(health=(500,) * 99)), baseline=await serve(Manner())
        )
        window = await load.measure(order)
        assert window.baseline is not None
        assert (window.candidate.healthy, window.baseline.healthy) == (False, True)

    async def test_a_single_missed_health_check_is_not_down(self, load: Load, serve: Serve) -> None:
        candidate = await serve(Manner(health=(200, 500, 200, 500, 500, 200)))
        window = await load.measure(replace(QUICK, seconds=2.0, candidate=candidate))
        assert window.candidate.healthy

    async def test_the_probes_are_asked_in_turn(self, load: Load, serve: Serve) -> None:
        order = replace(QUICK, candidate=await serve(Manner()), probes=(Probe(), Probe(status=201), Probe(), Probe()))
        assert dict((await load.measure(order)).candidate.faults) == {"status": 5}

    @pytest.mark.parametrize(
        "url",
        [
            "http://example.org",
            "http://10.0.0.1:8000",
            "http://0.0.0.0:8000",
            "http://127.0.0.1@example.org",
            "http://name@127.0.0.1:8000",
            "http://127.0.0.1.example.org",
            "https://127.0.0.1:8000",
            "file:///etc/passwd",
            "http://127.0.0.1:99999",
            "http://[::1",
            "//127.0.0.1",
            "127.0.0.1:8000",
        ],
    )
    async def test_only_loopback_is_asked(self, load: Load, serve: Serve, url: str) -> None:
        good = await serve(Manner())
        for order in (replace(QUICK, candidate=url), replace(QUICK, candidate=good, baseline=url)):
            with pytest.raises(InvalidInput, match="only http addresses on loopback"):
                await load.measure(order)

    async def test_a_candidate_is_needed(self, load: Load) -> None:
        with pytest.raises(InvalidInput, match="loopback"):
            await load.measure(QUICK)

    @pytest.mark.parametrize("path", ["", "@example.org/", "tags", "http://example.org/", "/a b", "/\n"])
    async def test_a_path_cannot_lead_elsewhere(self, load: Load, serve: Serve, path: str) -> None:
        url = await serve(Manner())
        for order in (replace(QUICK, probes=(Probe(path=path),)), replace(QUICK, health=Probe(path=path))):
            with pytest.raises(InvalidInput, match="path has to begin with '/'"):
                await load.measure(replace(order, candidate=url))

    @pytest.mark.parametrize(
        "changes", [{"rate": 0.0}, {"seconds": -1.0}, {"timeout": float("nan")}, {"rate": float("inf")}, {"probes": ()}]
    )
    async def test_senseless_orders_are_refused(self, load: Load, serve: Serve, changes: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            await load.measure(replace(QUICK, candidate=await serve(Manner()), **changes))
