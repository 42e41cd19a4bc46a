"""``mendwork compare``: two builds side by side, from the store; their results from the mirror, or from their diffs."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.lines import plain
from adapters.cli.log.trace import seconds
from adapters.cli.resume.results import Difference, Result, difference
from adapters.cli.session import put, say
from adapters.cli.show import printable
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.errors import InvalidInput
from domain.money.budget import Spent
from domain.money.usage import dollars
from domain.ports.ledger import CostLine
from domain.trace.comparing import Side, changed, side_of
from domain.trace.parts import BuildDetails

if TYPE_CHECKING:
    from domain.ports.store import Store

MOST_FILES = 8
NARROWEST, WIDEST = 18, 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Which two, and how much of their difference."""

    left: str
    right: str
    diff: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One side with its money; ``carried`` calls and micro-dollars were spent by the snapshot that it goes on from."""

    side: Side
    details: BuildDetails
    cost: CostLine
    result: Result


async def compare(settings: Settings, wanted: Pair) -> int:
    """Works while either still runs. Raises UnknownName, InvalidInput."""
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    blobs, now = blobs_of(settings), int(time.time() * 1000)
    async with await open_store(settings.store_url) as store:
        left, right = [await _compared(store, name, now=now) for name in (wanted.left, wanted.right)]
    if left.side.build == right.side.build:
        raise InvalidInput(f"{left.side.build} is the same build twice: name two")
    found = await difference(settings, blobs, left.result, right.result)
    if wanted.json:
        put(jsonlib.dumps(_as_json(left, right, found, wanted)))
        return 0
    if wanted.diff:
        put(printable(found.diff)) if found.diff else say("mendwork: the two results do not differ")
        return 0
    for line in _table(left, right, found):
        put(line)
    return 0


async def _compared(store: Store, name: str, *, now: int) -> Compared:
    details = await details_of(store, name)
    if details.alone:
        raise InvalidInput(f"{name} is a delivery: compare two builds")
    events = [event for _, event in await store.events.read(details.build)]
    lines = await store.ledger.costs("build", build=details.build)
    cost = lines[0] if lines else CostLine(name=details.build, spent=Spent())
    return Compared(side=side_of(details, events, now=now), details=details, cost=cost, result=Result.of(details))


def _table(left: Compared, right: Compared, found: Difference) -> Iterator[str]:
    rows = list(zip(_rows(left, found.left), _rows(right, found.right), strict=True))
    width = min(WIDEST, max(NARROWEST, *(len(one) for (_, one), _ in rows)))
    for (name, one), (_, other) in rows:
        yield f"{name:<13}  {_short(one):<{width}}  {_short(other)}".rstrip()
    files = changed(found.diff)
    if not files:
        yield f"{'differ in':<13}  nothing: the results are the same"
    for number, each in enumerate(files):
        yield f"{'differ in' if not number else '':<13}  {plain(each.path)}  +{each.added} -{each.removed}"
    if files and found.source == "patches":
        yield f"{'':<13}  (told from the builds' diffs: their commits are not here)"


def _rows(one: Compared, diff: str) -> Iterator[tuple[str, str]]:
    side, spent, carried = one.side, one.cost.spent, one.details.carried
    merged = sum(status == "merged" for status in side.tasks.values())
    paths = [plain(each.path) for each in changed(diff)]
    more = f" and {len(paths) - MOST_FILES} more" if len(paths) > MOST_FILES else ""
    yield "", side.build
    yield "goes on from", plain(side.parent) or "(its own start)"
    yield "base", side.base[:12] or "(none yet)"
    yield "head", side.head[:12] or "(none yet)"
    yield "status", side.status if side.status != "running" else f"running ({plain(side.phase)})"
    yield "models", ", ".join(map(plain, side.models)) or "(none asked)"
    yield "tasks", f"{merged} of {len(side.tasks)} merged"
    yield "attempts", str(side.attempts)
    yield "tests", _verdict(side)
    yield "findings", ", ".join(f"{count} {name}" for name, count in side.findings.items()) or "(not reviewed)"
    yield "cost", dollars(spent.lasting) + (f" + {dollars(carried.cost_micros)} before" if side.parent else "")
    yield "calls", str(spent.calls) + (f" + {carried.calls} before" if side.parent else "")
    yield "tokens", f"{one.cost.input_tokens} + {one.cost.output_tokens}"
    yield "time", seconds(side.millis) + ("…" if side.status == "running" else "")
    yield "files", f"{len(paths)}: {', '.join(paths[:MOST_FILES])}{more}" if paths else "none"


def _verdict(side: Side) -> str:
    if "green" not in side.gates:
        return "(not run)"
    parts = [f"{side.gates.get(name)} {name}" for name in ("new", "lost", "fixed") if side.gates.get(name)]
    colour = "green" if side.gates["green"] else "red"
    return ", ".join([f"{colour}: {plain(side.gates.get('reason', ''))}", *parts])


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _as_json(left: Compared, right: Compared, found: Difference, wanted: Pair) -> dict[str, Any]:
    return {
        "builds": [_side_json(one, diff) for one, diff in ((left, found.left), (right, found.right))],
        "difference": {
            "source": found.source,
            "files": [asdict(each) for each in changed(found.diff)],
            "diff": found.diff if wanted.diff else None,
        },
    }


def _side_json(one: Compared, diff: str) -> dict[str, Any]:
    return {
        **asdict(one.side),
        "calls": one.cost.spent.calls,
        "cost_micros": one.cost.spent.lasting,
        "held_micros": one.cost.spent.held,
        "carried_calls": one.details.carried.calls,
        "carried_micros": one.details.carried.cost_micros,
        "input_tokens": one.cost.input_tokens,
        "output_tokens": one.cost.output_tokens,
        "files": [asdict(each) for each in changed(diff)],
    }
