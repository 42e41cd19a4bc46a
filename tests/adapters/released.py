"""A project with a target, and releases of it as their sagas record them."""

from __future__ import annotations

from typing import Any

from adapters.settings import Settings
from adapters.store import open_store
from domain.ports.releases import Release
from tests.domain.delivery_stories import ARTIFACT, COMMIT, RISK, window
from tests.domain.trace_stories import GREEN

PROJECTS: dict[str, Any] = {
    "calc": {"repository": "calc", "test": "true", "delivery": {"target": "local", "run": "serve"}},
    "plain": {"repository": "plain", "test": "true"},
}
EVIL = '<script>alert(1)</script>\x1b[2J" onload="x\u202e'
RECORD: dict[str, Any] = {
    "approved": [{"what": "release", "digest": "d" * 64, "by": "ann", "how": "person", "at": 1_700_000_005_000}],
    "risk": RISK,
    "integration": GREEN,
    "steps": [{"name": "migrate", "kind": "reversible", "green": True, "sentence": "2 tables"}],
    "watch": {
        "kind": "fail",
        "reason": "180 of 600 failed",
        "series": [window(1, "pass", failed=5), window(2, "fail", failed=180, p95=900.0)],
    },
    "timings": {"artifact": 1.25, "watch": 60.0},
    "residues": ["the unit of release 3 is still there"],
    "proof": {"release": 2, "status": 200, "ok": True},
}


def release(number: int = 3, **changes: Any) -> Release:
    """One that was rolled back."""
    known: dict[str, Any] = {
        "project": "calc",
        "saga": f"deliver-calc-{number}",
        "revision": 1,
        "kind": "deliver",
        "status": "rolled back",
        "commit": COMMIT,
        "artifact": ARTIFACT,
        "config": "f" * 64,
        "previous": 2,
        "started": 1_700_000_000_000,
        "ended": 1_700_000_100_000,
        "sentence": "180 of 600 failed",
        "record": RECORD,
    }
    return Release(number=number, **{**known, **changes})


async def keep(settings: Settings, *releases: Release) -> None:
    """Record them, each under the number that it has."""
    async with await open_store(settings.store_url) as store:
        for each in releases:
            for number in range(1, each.number):
                await store.releases.reserve(each.project, saga=f"deliver-calc-{number}")
            await store.releases.reserve(each.project, saga=each.saga)
            await store.releases.record(each)
