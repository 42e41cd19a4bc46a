"""A release's record, read forgivingly: every key may be missing, and none is trusted to be what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.cli.release.series import Moments
from domain.ports.releases import PROMOTED, ROLLED_BACK, Release
from domain.trace.delivery.series import Point, number_in, points_of

LISTS = ("approved", "steps")
OBJECTS = ("risk", "integration", "watch", "snapshot", "proof")


def record_of(release: Release) -> dict[str, Any]:
    """Every known key: lists of objects, objects, ``timings`` as seconds by phase, ``residues`` as it is."""
    raw = release.record
    record: dict[str, Any] = {name: [each for each in _list(raw.get(name)) if _is_object(each)] for name in LISTS}
    record |= {name: value if _is_object(value := raw.get(name)) else {} for name in OBJECTS}
    timings = raw.get("timings")
    items = timings.items() if isinstance(timings, Mapping) else ()
    record["timings"] = {str(name): number_in(seconds) for name, seconds in items}
    record["residues"] = _list(raw.get("residues"))
    return record


def watch_of(record: Mapping[str, Any]) -> tuple[str, str, tuple[Point, ...]]:
    """How the watch ended, why, and what it measured."""
    watch = record["watch"]
    return str(watch.get("kind", "")), str(watch.get("reason", "")), points_of(watch.get("series"))


def moments_in(release: Release) -> Moments:
    """What traffic did, as the record tells it: a watch begins when traffic goes to the release."""
    proof = release.record.get("proof")
    to = proof.get("release") if isinstance(proof, Mapping) else None
    back = int(number_in(to if to is not None else release.previous)) if release.status == ROLLED_BACK else None
    return Moments(switched=release.number, back=back, promoted=release.status == PROMOTED)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)
