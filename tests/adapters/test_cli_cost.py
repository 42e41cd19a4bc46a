"""``mendwork cost`` and ``reconcile`` as a person and a script read them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.cli.cost import CostWanted, cost, reconcile
from adapters.compliance.calls import ANSWER, BOUND, CALL, KEY, LOST, PAYER
from adapters.compliance.store import event
from adapters.settings import Settings
from adapters.store import open_store
from domain.build.view import STARTED
from domain.errors import InvalidInput, UnknownName
from domain.ports.store import Store

LOST_KEY = "build-a-1-task-one/change/1/2"


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    """Of a project with one answered, one lost and one running call, beside another project's."""
    settings = Settings(root=tmp_path)
    async with await open_store(settings.store_url) as store:
        await store.events.append([event(1, STARTED, project="a", title="Add tags")])
        await store.events.append([event(1, STARTED, build="build-b-1", project="b", title="Add tags")])
        await store.calls.end(KEY, await store.calls.begin(KEY, CALL), outcome=ANSWER)
        await _lose(store, 2)
        planning = replace(CALL, payer=replace(PAYER, task="", phase="plan", role="\x1b[31mplan"), bound=5)
        await store.calls.begin(replace(KEY, turn=3), planning)
        other = replace(CALL, payer=replace(PAYER, project="b", build="build-b-1"))
        await store.calls.begin(replace(KEY, turn=4), other)
    return settings


async def _lose(store: Store, turn: int) -> None:
    key = replace(KEY, turn=turn)
    await store.calls.end(key, await store.calls.begin(key, CALL), outcome=LOST)


async def said(settings: Settings, capsys: pytest.CaptureFixture[str], **wanted: Any) -> list[str]:
    assert await cost(settings, CostWanted(**wanted)) == 0
    return capsys.readouterr().out.splitlines()


async def test_a_build_is_shown_by_its_tasks_with_what_is_still_open(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(settings, capsys, build="build-a-1") == [
        "(no task)     1 calls          0 + 0        tokens  $0.0000, $0.0000 held",
        "one           2 calls       1200 + 300      tokens  $0.0081, $0.0200 unknown",
        "total         3 calls       1200 + 300      tokens  $0.0081, $0.0000 held, $0.0200 unknown",
        f"{LOST_KEY}#1 of fast was lost in flight: $0.0200 counts until it is known",
    ]


async def test_without_a_build_there_is_a_line_for_each(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split()[0] for line in await said(settings, capsys)][:3] == ["build-a-1", "build-b-1", "total"]
    only = await said(settings, capsys, project="b")
    assert [line.split()[0] for line in only] == ["build-b-1"], "another project's open calls are not shown"


async def test_a_name_from_outside_cannot_paint_the_terminal(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\x1b" not in "".join(await said(settings, capsys, by="role"))


async def test_a_script_gets_micros_under_stable_names(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = await said(settings, capsys, project="a", by="model", json=True)
    sums = {
        "calls": 3, "input_tokens": 1200, "output_tokens": 300, "settled_micros": 8100, "held_micros": 5,
        "unknown_micros": BOUND, "written_off_micros": 0, "unpriced": 0,
    }  # fmt: skip
    lost = {"call": f"{LOST_KEY}#1", "build": "build-a-1", "model": "fast", "state": "unknown", "bound_micros": BOUND,
            "at": CALL.at}  # fmt: skip
    assert json.loads(line) == {
        "by": "model", "build": "", "project": "a", "lines": [{"name": "fast", **sums}], "total": sums, "open": [lost],
        "carried": None,
    }  # fmt: skip


async def test_unknown_names_list_the_known_ones(settings: Settings) -> None:
    with pytest.raises(UnknownName, match="'build-x-1'; known: build-a-1, build-b-1"):
        await cost(settings, CostWanted(build="build-x-1"))
    with pytest.raises(UnknownName, match="'x'; known: a, b"):
        await cost(settings, CostWanted(project="x"))
    with pytest.raises(UnknownName, match="known: build, day, model, phase, project, role, task, user"):
        await cost(settings, CostWanted(by="colour"))


async def test_a_store_without_calls_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await cost(Settings(root=tmp_path), CostWanted()) == 0
    assert capsys.readouterr() == ("", "mendwork: no model has been called\n")


async def test_a_lost_call_is_settled_by_the_providers_bill(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await reconcile(settings, LOST_KEY, 0.0123) == 0
    assert capsys.readouterr().out == f"{LOST_KEY}#1 is settled with $0.0123; $0.0200 counted for it before\n"
    sums = json.loads((await said(settings, capsys, build="build-a-1", json=True))[0])
    assert (sums["total"]["settled_micros"], sums["total"]["unknown_micros"], sums["open"]) == (8100 + 12_300, 0, [])


async def test_of_several_lost_tries_one_is_named(settings: Settings) -> None:
    async with await open_store(settings.store_url) as store:
        await _lose(store, 2)
    with pytest.raises(InvalidInput, match=f"name one of {LOST_KEY}#1, {LOST_KEY}#2"):
        await reconcile(settings, LOST_KEY, 0.01)
    assert await reconcile(settings, f"{LOST_KEY}#2", 0.01) == 0


async def test_only_a_lost_call_can_be_reconciled(settings: Settings) -> None:
    for key in (str(KEY), "build-a-1-task-one/change/1/3", f"{LOST_KEY}#7", ""):
        with pytest.raises(UnknownName, match=f"known: {LOST_KEY}#1"):
            await reconcile(settings, key, 0.01)


@pytest.mark.parametrize("usd", [-0.01, float("nan"), float("inf"), 1e7])
async def test_a_bill_is_an_amount(settings: Settings, usd: float) -> None:
    with pytest.raises(InvalidInput, match="a bill is between 0 and 1,000,000 USD"):
        await reconcile(settings, LOST_KEY, usd)
