"""What a delivery notes, as text for a line. Whoever prints it takes out what is not printable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.trace.delivery.series import Figures, point_of
from domain.trace.delivery.told import texts

PHASES = {
    "admit": "looking at the project and the commit",
    "lane": "waiting for its turn",
    "artifact": "building the artefact",
    "staging": "starting it on staging",
    "integration": "running the integration tests against staging",
    "production": "starting it beside production",
    "switch": "leading traffic to it",
    "watch": "watching it",
    "rollback": "leading traffic back",
    "undo": "undoing what it did",
}


def delivery_text(kind: str, data: Mapping[str, Any]) -> str | None:
    """One clear line, or None for what says nothing new to a person."""
    match kind.partition(".")[0]:
        case "delivery":
            return _delivery(kind, data)
        case "lane":
            return _lane(kind, data)
        case "watch":
            return _watch(kind, data)
        case "release":
            return _release(kind, data)
    return _step(kind, data)


def _delivery(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "delivery.phase":
            return PHASES.get(str(data.get("phase", "")))
        case "delivery.began":
            what = "rollback" if data.get("kind") == "rollback" else "delivery"
            commit = f" of {str(data['commit'])[:12]}" if data.get("commit") else ""
            return f"release {data['release']}: {what}{commit} for {data['project']}"
        case "delivery.snapshot":
            return (
                f"production runs release {data['release']}" if data.get("release") else "production runs nothing yet"
            )
        case "delivery.ended":
            left = "".join(f"; left: {each}" for each in texts(data.get("residues")))
            return f"delivery {data['status']}: {data['sentence']}{left}"
    return None


def _lane(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "lane.joined" if data.get("position"):
            why = data.get("reason") or f"at place {data['position']}"
            return f"waits in {data['lane']}: {why}"
        case "lane.granted" if _seconds(data, "waited") >= 1:
            return f"its turn came after {_seconds(data, 'waited'):.0f} s"
        case "lane.refused":
            return f"its lane refuses it: {data['reason']}"
    return None


def _step(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "artifact.built":
            size = _seconds(data, "size") / 1_000_000
            return f"artefact {data['artifact'][:12]}: {data['files']} files, {size:.1f} MB{_lasted(data)}"
        case "integration.ran":
            return f"integration tests {'green' if data['green'] else 'red'}: {data['reason']}{_lasted(data)}"
        case "risk.scored":
            figures = f"risk {_seconds(data, 'risk'):.2f}, confidence {_seconds(data, 'confidence'):.2f}"
            return f"{figures}: {data['action']} ({data['why']})" if data.get("why") else f"{figures}: {data['action']}"
        case "step.ran":
            said = f": {data['sentence']}" if data.get("sentence") else ""
            return f"step {data['name']} ({data['kind']}) {'done' if data['green'] else 'failed'}{said}"
    return None


def _release(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "release.staged":
            return f"healthy on staging: {data['url']}{_lasted(data)}"
        case "release.approved":
            hows = {"person": "", "beforehand": ", beforehand", "policy": ": nobody has to be asked"}
            return f"approved by {data['by'] or 'nobody'}{hows.get(str(data['how']), '')}"
        case "release.started":
            return f"healthy beside production, without traffic: {data['url']}{_lasted(data)}"
        case "release.switched":
            ends = f"release {data['previous']} to" if data["previous"] else "nothing to release"
            return f"production is switched from {ends} {data['release']}: {data['url']}"
        case "release.promoted":
            return f"release {data['release']} is promoted"
        case "release.rolled_back":
            where = f"release {data['to']} serves again" if data.get("to") else "the site is closed, as before"
            return f"rolled back: {where}: {data['reason']}"
    return None


def _watch(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "watch.window":
            return window_text(data)
        case "watch.undecided":
            return f"the watch cannot tell ({data['kind']}): {data['reason']}"
        case "watch.ended":
            by = f", by {data['by']}" if data.get("by") else ""
            return f"the watch ends after {data['windows']} windows: {data['kind']}{by}: {data['reason']}"
    return None


def window_text(data: Mapping[str, Any]) -> str | None:
    """One window of a watch."""
    point = point_of(data)
    if point is None:
        return None
    beside = f", before {_arm(point.baseline)}" if point.baseline else ""
    reason = f": {point.reason}" if point.reason else ""
    return f"window {point.number} {point.verdict}{reason} ({_arm(point.candidate)}{beside})"


def _arm(arm: Figures) -> str:
    return f"{arm.failed} of {arm.asked} failed, p95 {arm.p95:.0f} ms"


def _lasted(data: Mapping[str, Any]) -> str:
    return f" ({_seconds(data, 'seconds'):.1f} s)"


def _seconds(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
