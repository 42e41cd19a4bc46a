"""``mendwork cost`` and ``mendwork reconcile``: what calls cost, and what is still to be found out."""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.build.details import fold_details
from domain.errors import InvalidInput, UnknownName
from domain.money.budget import Spent
from domain.money.usage import dollars
from domain.ports.ledger import CostLine, OpenCall

if TYPE_CHECKING:
    from domain.ports.store import Store

MOST_USD = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostWanted:
    """What a person asked to see: one build, one project ("" is all), grouped ``by`` one of COST_BY; "" groups a build
    by its tasks and anything else by builds."""

    build: str = ""
    project: str = ""
    by: str = ""
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What had been spent by the snapshot that a build goes on from, in calls and micro-dollars."""

    token: str
    calls: int
    micros: int


async def cost(settings: Settings, wanted: CostWanted) -> int:
    """Print a line a group, their sum, and the calls of which nobody knows what they cost. Raises UnknownName."""
    from adapters.store import open_store

    by = wanted.by or ("task" if wanted.build else "build")
    async with await open_store(settings.store_url) as store:
        await _check_names(settings, store, wanted)
        lines = await store.ledger.costs(by, build=wanted.build, project=wanted.project)
        builds = {line.name for line in await store.ledger.costs("build", project=wanted.project)}
        calls = [call for call in await store.ledger.open_calls(build=wanted.build) if call.build in builds]
        carried = await _carried(store, wanted.build)
    if wanted.json:
        put(jsonlib.dumps(_as_json(by, wanted, lines, calls) | {"carried": asdict(carried) if carried else None}))
        return 0
    if lines:
        _put_text(by, lines, calls)
    elif carried is None:
        say("mendwork: no model has been called")
    if carried is not None:
        put(f"carried over from {plain(carried.token)}: {carried.calls} calls, {dollars(carried.micros)}")
    return 0


async def _carried(store: Store, build: str) -> Carried | None:
    """None for a build that began from the start, and for several."""
    if not build:
        return None
    details = fold_details(build, [event for _, event in await store.events.read(build)])
    spent = details.carried
    return Carried(token=details.parent, calls=spent.calls, micros=spent.cost_micros) if details.parent else None


async def reconcile(settings: Settings, key: str, usd: float) -> int:
    """Settle a call that was lost in flight by the provider's bill. ``key`` is as ``cost`` prints it: the call's, with
    "#" and the number of its try where several were lost. Raises UnknownName, InvalidInput."""
    from adapters.store import open_store

    if not math.isfinite(usd) or not 0 <= usd <= MOST_USD:
        raise InvalidInput(f"a bill is between 0 and {MOST_USD:,.0f} USD")
    micros = math.ceil(round(usd * 1_000_000, 6))
    async with await open_store(settings.store_url) as store:
        call = _meant(key, await store.ledger.open_calls())
        await store.ledger.reconcile(call.key, call.number, micros=micros)
    put(f"{_named(call)} is settled with {dollars(micros)}; {dollars(call.bound)} counted for it before")
    return 0


async def _check_names(settings: Settings, store: Store, wanted: CostWanted) -> None:
    if wanted.build and await store.builds.get(wanted.build) is None:
        raise UnknownName.among("build", wanted.build, [row.build for row in await store.builds.list(limit=10)])
    if wanted.project and wanted.project not in settings.projects:
        known = [line.name for line in await store.ledger.costs("project")]
        if wanted.project not in known:
            raise UnknownName.among("project", wanted.project, {*settings.projects, *known})


def _meant(key: str, calls: Sequence[OpenCall]) -> OpenCall:
    found = [call for call in calls if key in (call.key, _named(call))]
    if not found:
        raise UnknownName.among("call of unknown cost", key, [_named(call) for call in calls[:10]])
    if len(found) > 1:
        raise InvalidInput(f"several tries of that call were lost: name one of {', '.join(map(_named, found))}")
    return found[0]


def _named(call: OpenCall) -> str:
    return f"{call.key}#{call.number}"


def _put_text(by: str, lines: Sequence[CostLine], calls: Sequence[OpenCall]) -> None:
    names = [plain(line.name) or f"(no {by})" for line in lines]
    width = max(map(len, [*names, "total"]))
    for name, line in zip(names, lines, strict=True):
        put(f"{name:<{width}}  {_text(line)}")
    if len(lines) > 1:
        put(f"{'total':<{width}}  {_text(_total(lines))}")
    for call in calls:
        end = "counts for good" if call.money == "written_off" else "counts until it is known"
        put(f"{_named(call)} of {plain(call.model)} was lost in flight: {dollars(call.bound)} {end}")
    if calls:
        say("with the provider's bill at hand: mendwork reconcile CALL USD")


def _text(line: CostLine) -> str:
    spent = line.spent
    rest = {"held": spent.held, "unknown": spent.unknown, "written off": spent.written_off}
    text = f"{spent.calls:>4} calls  {line.input_tokens:>9} + {line.output_tokens:<8} tokens  {dollars(spent.settled)}"
    text += "".join(f", {dollars(micros)} {name}" for name, micros in rest.items() if micros)
    return f"{text}, {line.unpriced} of unknown cost" if line.unpriced else text


def _total(lines: Sequence[CostLine]) -> CostLine:
    return CostLine(
        name="",
        spent=sum((line.spent for line in lines), start=Spent()),
        input_tokens=sum(line.input_tokens for line in lines),
        output_tokens=sum(line.output_tokens for line in lines),
        unpriced=sum(line.unpriced for line in lines),
    )


def _as_json(by: str, wanted: CostWanted, lines: Sequence[CostLine], calls: Sequence[OpenCall]) -> dict[str, Any]:
    return {
        "by": by,
        "build": wanted.build,
        "project": wanted.project,
        "lines": [{"name": line.name, **_sums(line)} for line in lines],
        "total": _sums(_total(lines)),
        "open": [_open(call) for call in calls],
    }


def _open(call: OpenCall) -> dict[str, Any]:
    return {
        "call": _named(call),
        "build": call.build,
        "model": call.model,
        "state": call.money,
        "bound_micros": call.bound,
        "at": call.at,
    }


def _sums(line: CostLine) -> dict[str, int]:
    return {
        "calls": line.spent.calls,
        "input_tokens": line.input_tokens,
        "output_tokens": line.output_tokens,
        "settled_micros": line.spent.settled,
        "held_micros": line.spent.held,
        "unknown_micros": line.spent.unknown,
        "written_off_micros": line.spent.written_off,
        "unpriced": line.unpriced,
    }
