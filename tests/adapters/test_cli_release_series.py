"""A watch that is followed: its lines, its picture, and the code that a delivery ends with."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest

from adapters.cli.exits import exit_code
from adapters.cli.follow import follow
from adapters.cli.lines import line_of
from adapters.cli.log.screens import LineScreen
from adapters.cli.release.series import Chart, Moments, coloured, drawn
from adapters.cli.status import details_of
from adapters.store.memory import MemoryStore
from domain.build.details import DetailsFold, fold_details
from domain.ports.store import Event
from domain.trace.delivery.series import points_of
from tests.adapters.released import EVIL
from tests.domain.delivery_stories import (
    ALONE,
    OF_BUILD,
    alone,
    of_build,
    promoted,
    rolled_back,
    until_asked,
    window,
)
from tests.domain.trace_stories import BUILD, Saga


def followed(events: Sequence[Event], chart: Chart | None = None) -> None:
    """As the follower shows them, a look an event."""
    screen, fold = LineScreen(chart), DetailsFold(ALONE)
    for event in events:
        screen.show([event], fold.add([event]))
    screen.close()


def test_every_step_of_a_delivery_is_one_clear_line() -> None:
    assert [line for line in map(line_of, rolled_back()) if line] == [
        "looking at the project and the commit",
        f"release 3: delivery of {'c' * 12} for calc",
        "waiting for its turn",
        "waits in lane-calc-production: at place 1",
        "its turn came after 1 s",
        "production runs release 2",
        "building the artefact",
        f"artefact {'a' * 12}: 9 files, 0.0 MB (1.0 s)",
        "healthy on staging: http://s (0.5 s)",
        "integration tests green: 4 tests passed (0.5 s)",
        "risk 0.34, confidence 0.80: ask (the risk is above the project's limit)",
        "waits for an answer: release 3 to production: risk 0.34 (release-1, digest fedcba987654)",
        "release-1 is answered: approve by ann",
        "approved by ann",
        "starting it beside production",
        "healthy beside production, without traffic: http://u (0.5 s)",
        "step migrate (reversible) done",
        "production is switched from release 2 to 3: http://p",
        "watching it",
        "window 1 pass (5 of 600 failed, p95 40 ms, before 6 of 600 failed, p95 41 ms)",
        "window 2 fail: 180 failed (180 of 600 failed, p95 900 ms, before 6 of 600 failed, p95 41 ms)",
        "the watch ends after 2 windows: fail: 180 of 600 failed",
        "undoing what it did",
        "rolled back: release 2 serves again: 180 of 600 failed",
        "delivery rolled back: 180 of 600 failed",
    ]


def test_a_line_cannot_paint_the_terminal() -> None:
    line = line_of(Saga("r").note(1, "lane.refused", reason=EVIL))
    assert line is not None
    assert line.isprintable()


class TestThePicture:
    def test_compares_the_new_release_with_the_old_one_window_by_window(self) -> None:
        points = points_of([window(1, "pass", failed=0), window(2, "fail", failed=300, p95=820.0)])
        rows = list(drawn(points, Moments(switched=3, back=2)))
        assert [row.style for row in rows] == ["dim", "bold", "green", "red", "bold"]
        assert rows[3].text.count("█") == 32, "the worst of both measures has the longest bars"
        assert "█" not in rows[2].text.partition("%")[0]
        assert " 50.0% |   1.0%" in rows[3].text

    def test_without_an_older_release_or_without_data_draws_no_number(self) -> None:
        empty = {**window(1, "no data"), "asked": 0, "failed": 0, "baseline_asked": 0}
        (row,) = list(drawn(points_of([empty]), Moments()))[1:]
        assert row.text.count("–") == 4

    def test_of_a_long_watch_shows_its_last_windows(self) -> None:
        rows = list(drawn(points_of([window(number, "pass") for number in range(1, 41)]), Moments(switched=3)))
        assert rows[2].text == "  … 20 windows before"
        assert [row.text.split()[0] for row in rows[3:]] == [str(number) for number in range(21, 41)]

    def test_has_colours_only_where_they_are_wanted(self) -> None:
        (_, row) = drawn(points_of([window(1, "fail")]), Moments())
        assert coloured(row, colours=True) == f"\033[31m{row.text}\033[0m"
        assert coloured(row, colours=False) == row.text

    def test_is_drawn_anew_in_its_place(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        stream = io.StringIO()
        followed(alone(promoted()), Chart(stream))
        first, second = stream.getvalue().split("\033[3A\r\033[J")
        assert [line.split()[0] for line in first.splitlines()] == ["window", "──", "1"]
        assert [line.split()[0] for line in second.splitlines()] == ["window", "──", "1", "2"]
        assert "window 1 pass" not in capsys.readouterr().err, "the picture says it"

    def test_begins_below_what_was_written_in_between(self) -> None:
        stream, events = io.StringIO(), alone(promoted())
        last = next(number for number, event in enumerate(events) if event.data.get("number") == 2)
        events.insert(last, Saga("x").note(8500, "answer.refused", choice="abort", by="ann", reason="too late"))
        followed(events, Chart(stream))
        assert "\033[3A" not in stream.getvalue()
        assert stream.getvalue().count("window  verdict") == 2

    def test_fits_the_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setenv("LINES", "4")
        stream = io.StringIO()
        Chart(stream).draw(fold_details(ALONE, alone(rolled_back())).delivery)
        lines = stream.getvalue().splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= 39


def ended(status: str, *, kind: str = "deliver", refused: bool = False) -> list[Event]:
    """A delivery that runs alone."""
    saga = Saga("r")
    story = until_asked(saga, ALONE)
    story[1] = Saga("r", sequence=1).note(1100, "delivery.began", **{**story[1].data, "kind": kind})
    if refused:
        story.append(saga.note(6000, "ask.closed", id="release-1", about="release", choice="reject", by="ann"))
    ends: dict[str, Any] = {"status": status, "sentence": "so", "release": 3, "residues": []}
    return alone([*story, saga.note(7000, "delivery.ended", **ends)])


class TestTheCode:
    @pytest.mark.parametrize(
        ("story", "code"),
        [
            (alone(promoted()), 0),
            (alone(rolled_back()), 5),
            (ended("undelivered"), 5),
            (ended("undelivered", refused=True), 3),
            (ended("unclear"), 8),
            (ended("rolled back", kind="rollback"), 0),
        ],
    )
    async def test_of_a_delivery_tells_how_it_ended(
        self, story: list[Event], code: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with MemoryStore() as store:
            await store.events.append(story)
            assert await follow(store, ALONE, client=None, json=False) == code
        assert capsys.readouterr().out == f"{ALONE}\n"

    @pytest.mark.parametrize(("status", "code"), [("undelivered", 6), ("rolled back", 5), ("unclear", 8)])
    async def test_of_a_build_tells_what_its_delivery_came_to(self, status: str, code: int) -> None:
        async with MemoryStore() as store:
            await store.events.append(of_build(rolled_back(OF_BUILD), status))
            assert await follow(store, BUILD, client=None, json=False) == code
        assert exit_code(status, "") == code


async def test_a_builds_delivery_is_found_under_both_names() -> None:
    async with MemoryStore() as store:
        await store.events.append(of_build(rolled_back(OF_BUILD), "rolled back"))
        assert (await details_of(store, OF_BUILD)).build == BUILD
        assert (await details_of(store, BUILD)).delivery.saga == OF_BUILD


def test_a_first_release_replaces_nothing() -> None:
    row = Saga("r").note(1, "release.switched", release=1, previous=0, artifact="a", url="http://p", seconds=0.1)
    assert line_of(row) == "production is switched from nothing to release 1: http://p"
