"""``mendwork release list`` and ``show``: what a person, a script and a browser get of the record."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.release.releases import Shown, many, one, rows_of
from adapters.cli.release.report import page
from adapters.settings import Settings
from domain.errors import InvalidInput, UnknownName
from tests.adapters.released import EVIL, PROJECTS, RECORD, keep, release


@pytest.fixture
def settings(make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return make_settings(projects=PROJECTS)


class TestTheList:
    async def test_has_a_line_a_release_newest_first(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await keep(settings, release(1, status="promoted", build="build-calc-9"), release(2, kind="rollback"))
        assert await many(settings, project="", limit=20, json=False) == 0
        assert capsys.readouterr().out.splitlines() == [
            "calc  release 2  rolled back  rollback  cccccccccccc  2023-11-14 22:13  deliver-calc-2",
            "calc  release 1  promoted  cccccccccccc  2023-11-14 22:13  build-calc-9",
        ]

    async def test_is_json_for_a_script(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        await keep(settings, release(1))
        await many(settings, project="calc", limit=20, json=True)
        (found,) = json.loads(capsys.readouterr().out)
        assert (found["number"], found["status"], found["record"]["proof"]["release"]) == (1, "rolled back", 2)

    async def test_of_nothing_says_so(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        assert await many(settings, project="", limit=20, json=False) == 0
        assert capsys.readouterr() == ("", "nothing was delivered yet\n")
        with pytest.raises(UnknownName, match="'moon'; known: calc, plain"):
            await many(settings, project="moon", limit=20, json=False)


class TestARelease:
    async def test_is_shown_line_by_line(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        await keep(settings, release(3))
        assert await one(settings, Shown(number=3)) == 0
        out = capsys.readouterr().out
        lines = out.splitlines()
        assert "  approved: release dddddddddddd by ann (person)" in lines
        assert "  risk 0.34, confidence 0.80: ask (the risk is above the project's limit)" in lines
        terms = [line.split()[0] for line in lines if " × " in line]
        assert terms == ["migrations", "lines"], "what weighs most comes first"
        assert "  integration tests: green, 4 tests passed, 4 ran" in lines
        assert "  step migrate (reversible) done: 2 tables" in lines
        assert "  watch: fail, 180 of 600 failed" in lines
        assert "  timings: artifact 1.2 s, watch 60.0 s" in lines
        assert "  left behind: the unit of release 3 is still there" in lines
        assert "  proof: production answers with release 2, seen from outside" in lines
        drawn = [line for line in lines if "──" in line or re.match(r" +\d+  (pass|fail)", line)]
        assert [line.split()[1] for line in drawn] == ["traffic", "pass", "fail", "traffic"]
        assert "30.0% |   1.0%" in drawn[2]
        assert " 900 ms |   41 ms" in drawn[2]
        assert drawn[3] == "  ── traffic goes back to release 2 ──"
        assert "\x1b" not in out, "what is piped has no colours"

    async def test_that_is_not_known_lists_those_that_are(self, settings: Settings) -> None:
        await keep(settings, release(1))
        with pytest.raises(UnknownName, match="unknown release of calc '9'; known: 1"):
            await one(settings, Shown(number=9, project="calc"))

    async def test_is_whole_json_for_a_script(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        await keep(settings, release(3))
        await one(settings, Shown(number=3, json=True))
        assert json.loads(capsys.readouterr().out)["record"] == RECORD

    async def test_is_no_page_and_data_at_once(self, settings: Settings) -> None:
        with pytest.raises(InvalidInput, match="ask for one of them"):
            await one(settings, Shown(number=3, json=True, open=True))

    def test_cannot_paint_the_terminal(self, settings: Settings) -> None:
        from adapters.cli.release.releases import plain_indented

        evil = release(3, sentence=EVIL, record={**RECORD, "residues": [EVIL], "watch": {"kind": EVIL}})
        assert all(plain_indented(row.text).isprintable() for row in rows_of(evil))

    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*RECORD, "kind", "series"]), inner, max_size=4)
        ),
        max_leaves=10,
    )

    @given(st.dictionaries(st.sampled_from(sorted(RECORD)), junk))
    def test_is_shown_whatever_its_record_holds(self, record: Any) -> None:
        odd = release(3, record=record)
        assert list(rows_of(odd))
        assert page(odd).endswith("</html>\n")


def contents(folder: Path) -> dict[str, str]:
    """What each file in it holds."""
    return {each.name: each.read_text() for each in folder.iterdir()}


class Page(HTMLParser):
    """What a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


class TestThePage:
    def test_needs_nothing_from_afar_and_runs_nothing(self) -> None:
        evil = release(
            3,
            sentence=EVIL,
            saga=EVIL,
            record={
                **RECORD,
                "residues": [EVIL],
                "approved": [{"what": EVIL, "by": EVIL}],
                "watch": {
                    **RECORD["watch"],
                    "series": [window | {"verdict": EVIL} for window in RECORD["watch"]["series"]],
                },
            },
        )
        text = page(evil)
        found = Page(text)
        assert not {"script", "img", "link", "iframe", "object", "base", "form", "a"} & set(found.tags)
        assert [
            (name, value) for name, value in found.attributes if name.startswith("on") or name in ("href", "src")
        ] == []
        assert "default-src 'none'" in text.replace("&#x27;", "'")
        assert "alert(1)" in found.words, "it is text"
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "url(" not in text
        assert "@import" not in text

    def test_draws_both_releases_with_the_moments_of_the_traffic(self) -> None:
        found = Page(page(release(3)))
        assert found.tags.count("svg") == 2
        lines = [value for name, value in found.attributes if name == "points"]
        assert [len((points or "").split()) for points in lines] == [2, 2, 2, 2]
        errors_new = [float(spot.split(",")[1]) for spot in (lines[1] or "").split()]
        assert errors_new[1] < errors_new[0], "more errors are higher up"
        assert "traffic to release 3" in found.words
        assert "back to release 2" in found.words

    def test_of_a_release_without_a_watch_has_no_picture(self) -> None:
        assert "svg" not in Page(page(release(3, status="undelivered", record={}))).tags

    async def test_is_written_into_the_state_folder_and_its_path_printed(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await keep(settings, release(3))
        for _ in range(2):  # again is the same
            assert await one(settings, Shown(number=3, open=True)) == 0
        path = Path(capsys.readouterr().out.splitlines()[0])
        assert path == settings.state / "reports" / "calc-release-3.html"
        assert contents(path.parent) == {path.name: page(release(3))}, "nothing half is left"

    async def test_is_shown_by_the_systems_opener_where_there_is_a_screen(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await keep(settings, release(3))
        opener = tmp_path / "bin" / "xdg-open"
        opener.parent.mkdir()
        opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
        opener.chmod(opener.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{opener.parent}:/usr/bin:/bin")
        monkeypatch.setenv("DISPLAY", ":7")
        await one(settings, Shown(number=3, open=True))
        assert (tmp_path / "opened").read_text() == str(settings.state / "reports" / "calc-release-3.html")
