"""Deliveries as their sagas write them: one that is promoted, one that is rolled back by its watch, alone or of a
build."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.ports.store import Event
from tests.domain.trace_stories import BUILD, GREEN, Saga, begun

ALONE = "deliver-calc-7"
OF_BUILD = f"{BUILD}-release"
COMMIT, ARTIFACT = "c" * 40, "a" * 64
RISK: dict[str, Any] = {
    "risk": 0.34,
    "confidence": 0.8,
    "action": "ask",
    "why": "the risk is above the project's limit",
    "terms": [
        {"name": "lines", "weight": 0.15, "amount": 0.2, "share": 0.03, "why": "160 lines (full at 800)"},
        {"name": "migrations", "weight": 0.2, "amount": 1.0, "share": 0.2, "why": "1 migration"},
    ],
}
ASK: dict[str, Any] = {
    "id": "release-1",
    "about": "release",
    "kind": "approval",
    "digest": "fedcba9876543210",
    "sentence": "release 3 to production: risk 0.34",
    "choices": ["approve", "reject"],
    "opened": 5000,
    "deadline": 99_000,
}


def window(number: int, verdict: str, *, failed: int = 0, p95: float = 40.0) -> dict[str, Any]:
    """A window of 600 requests to each, as its row and the record hold it."""
    new = {"asked": 600, "failed": failed, "unmeasured": 0, "p50": p95 / 2, "p95": p95, "healthy": True}
    old = {"baseline_asked": 600, "baseline_failed": 6, "baseline_p50": 20.5, "baseline_p95": 41.0}
    return {
        "number": number,
        "verdict": verdict,
        "reason": "" if verdict == "pass" else f"{failed} failed",
        **new,
        **old,
    }


def until_asked(saga: Saga, name: str, at: int = 0) -> list[Event]:
    """From the admission to a person who is asked."""
    return [
        saga.note(at + 1000, "delivery.phase", phase="admit"),
        saga.note(at + 1100, "delivery.began", release=3, kind="deliver", commit=COMMIT, project="calc", saga=name),
        saga.note(at + 1100, "delivery.phase", phase="lane"),
        saga.note(at + 1200, "lane.joined", lane="lane-calc-production", position=1),
        saga.note(at + 2200, "lane.granted", lane="lane-calc-production", waited=1.0),
        saga.note(at + 2300, "delivery.snapshot", release=2, artifact="b" * 64, config="f" * 64, url="http://p"),
        saga.note(at + 2300, "delivery.phase", phase="artifact"),
        saga.note(at + 3300, "artifact.built", artifact=ARTIFACT, size=12_000, files=9, seconds=1.0, log="l"),
        saga.note(at + 3800, "release.staged", release=3, url="http://s", seconds=0.5),
        saga.note(at + 4800, "integration.ran", **GREEN),
        saga.note(at + 4900, "risk.scored", **RISK),
        saga.note(at + 4900, "delivery.phase", phase="approval"),
        saga.note(at + 5000, "ask.opened", **ASK, saga=name),
    ]


def switched(saga: Saga, at: int = 0) -> list[Event]:
    """Approved by Ann, started beside production, and under its traffic."""
    return [
        saga.note(at + 6000, "ask.closed", id="release-1", about="release", choice="approve", by="ann", reason=""),
        saga.note(at + 6000, "release.approved", artifact=ARTIFACT, digest=ASK["digest"], by="ann", how="person"),
        saga.note(at + 6100, "delivery.phase", phase="production"),
        saga.note(at + 6600, "release.started", release=3, url="http://u", seconds=0.5),
        saga.note(at + 6900, "step.ran", name="migrate", kind="reversible", green=True, sentence=""),
        saga.note(at + 7000, "release.switched", release=3, previous=2, artifact=ARTIFACT, url="http://p", seconds=0.1),
        saga.note(at + 7000, "delivery.phase", phase="watch"),
    ]


def watched(watch: Saga, *verdicts: dict[str, Any], at: int = 0) -> list[Event]:
    """The windows of a watch, a run of its own, each of a second."""
    return [
        watch.note(at + 7000 + 1000 * number, "watch.window", **verdict) for number, verdict in enumerate(verdicts, 1)
    ]


def promoted(name: str = ALONE, at: int = 0) -> list[Event]:
    """Two good windows."""
    saga, watch = Saga(f"run-{name}"), Saga(f"run-{name}-watch")
    return [
        *until_asked(saga, name, at),
        *switched(saga, at),
        *watched(watch, window(1, "pass", failed=5), window(2, "pass", failed=7), at=at),
        watch.note(at + 9000, "watch.ended", kind="pass", reason="2 windows passed", by="", windows=2),
        saga.note(at + 9100, "release.promoted", release=3),
        saga.note(at + 9200, "delivery.ended", status="promoted", sentence="release 3 serves", release=3, residues=[]),
    ]


def rolled_back(name: str = ALONE, at: int = 0) -> list[Event]:
    """The second window is bad."""
    saga, watch = Saga(f"run-{name}"), Saga(f"run-{name}-watch")
    sentence = "180 of 600 failed"
    return [
        *until_asked(saga, name, at),
        *switched(saga, at),
        *watched(watch, window(1, "pass", failed=5), window(2, "fail", failed=180, p95=900.0), at=at),
        watch.note(at + 9000, "watch.ended", kind="fail", reason=sentence, by="", windows=2),
        saga.note(at + 9100, "delivery.phase", phase="undo"),
        saga.note(at + 9500, "release.rolled_back", release=3, to=2, proof={"release": 2, "ok": True}, reason=sentence),
        saga.note(at + 9600, "delivery.ended", status="rolled back", sentence=sentence, release=3, residues=[]),
    ]


def alone(events: list[Event], name: str = ALONE) -> list[Event]:
    """The same rows as those of a case of their own."""
    return [replace(event, build=name) for event in events]


def of_build(delivery: list[Event], status: str) -> list[Event]:
    """A build that landed, and what its delivery did."""
    root = Saga("run-1")
    return [
        *begun(root),
        root.note(1000, "build.phase", phase="deliver"),
        *delivery,
        root.note(9900, "build.ended", status=status, sentence="on branch mendwork/b", branch="mendwork/b", commit="m"),
    ]
