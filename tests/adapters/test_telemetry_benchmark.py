"""The benchmark of telemetry still runs; what it measures is for `make bench`."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks import telemetry


def test_it_tells_what_a_try_costs_more_than_bare(capsys: pytest.CaptureFixture[str]) -> None:
    most = asyncio.run(telemetry.main(2, 20))
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in shown] == [
        *("bare", "measured", "measured, traced", "a model call, measured, traced", "a scrape", "most")
    ]
    assert f"{most:8.4f} ms an operation" in shown[-1]
