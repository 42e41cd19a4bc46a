"""``show``, ``status``, ``trace`` and ``events rebuild`` on a store and blobs as a build leaves them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from adapters.blobs import open_blobs
from adapters.cli.log.rebuild import RebuildWanted, rebuild
from adapters.cli.log.trace import TraceWanted, seconds, trace, tree_lines
from adapters.cli.show import Wanted, show
from adapters.cli.status import many, one
from adapters.settings import Settings
from adapters.store import open_store
from domain.build.prompt import Prompt
from domain.errors import EventUnreadable, InvalidInput, UnknownName
from domain.ports.language_model import Message
from domain.ports.store import Event
from domain.trace.lines import from_line
from domain.trace.tree import fold_trace
from tests.domain.trace_stories import BUILD, Saga, begun, reset, waiting, whole

PROMPT = Prompt(
    template="review",
    version="1",
    messages=(Message(role="system", content="You review."), Message(role="user", content="Look:\x1b[2J\tthis")),
)
Read = Callable[[], Any]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().out


async def keep(settings: Settings, events: list[Event]) -> None:
    async with await open_store(settings.store_url) as store:
        await store.events.append(events)


async def blob(settings: Settings, content: bytes) -> str:
    return await open_blobs(settings.state).put(content)


async def told(settings: Settings, events: list[Event], **contents: bytes) -> None:
    """Keep ``events`` whose references to a name of ``contents`` are to a blob that holds it."""
    digests = {name: await blob(settings, content) for name, content in contents.items()}
    await keep(settings, [replace(event, data=_referring(event.data, digests)) for event in events])


def _referring(data: Any, digests: dict[str, str]) -> dict[str, Any]:
    return {name: digests.get(value, value) if isinstance(value, str) else value for name, value in data.items()}


class TestShow:
    async def test_a_prompt_is_shown_as_the_model_read_it(self, settings: Settings, printed: Read) -> None:
        await told(settings, whole(), rp=PROMPT.to_bytes())
        assert await show(settings, Wanted(build=BUILD, phase="review", prompt=True)) == 0
        assert printed() == "── system ──\nYou review.\n\n── user ──\nLook:[2J\tthis\n"

    async def test_an_answer_is_shown_as_the_model_gave_it(self, settings: Settings, printed: Read) -> None:
        await told(settings, whole(), a=b'{"summary": "x"}', ra=b"no finding")
        await show(settings, Wanted(build=BUILD, task="api", attempt=1, answer=True))
        await show(settings, Wanted(build=BUILD, phase="review", answer=True, json=True))
        assert printed().splitlines() == [
            '{"summary": "x"}',
            json.dumps({"build": BUILD, "answer": "no finding"}),
        ]

    @pytest.mark.parametrize("named", ["q1", "0123456789ab", "0123456789ABCDEF"])
    async def test_a_packet_is_shown_with_its_diff(self, settings: Settings, printed: Read, named: str) -> None:
        diff = await blob(settings, b"--- a\n+++ b\n")
        packet = await blob(settings, json.dumps({"about": "change", "diff": diff}).encode())
        asked = [replace(e, data={**e.data, "digest": packet}) if e.kind == "ask.opened" else e for e in waiting()]
        await keep(settings, asked)
        await show(settings, Wanted(build=BUILD, packet=named if named == "q1" else packet[:12]))
        text = printed()
        assert json.loads(text.partition("\n\n")[0]) == {"about": "change", "diff": diff}
        assert text.endswith("--- a\n+++ b\n")

    @pytest.mark.parametrize(
        ("wanted", "error", "sentence"),
        [
            (Wanted(build=BUILD, attempt=1), InvalidInput, "--attempt needs"),
            (Wanted(build=BUILD, prompt=True), InvalidInput, "--prompt and --answer need"),
            (Wanted(build=BUILD, prompt=True, task="api", phase="plan"), InvalidInput, "--prompt and --answer need"),
            (Wanted(build=BUILD, diff=True, answer=True, task="api"), InvalidInput, "--diff and --answer"),
            (Wanted(build=BUILD, phase="plan"), InvalidInput, "--phase needs"),
            (Wanted(build=BUILD, phase="base", answer=True), UnknownName, "known: plan, review"),
            (Wanted(build=BUILD, task="apy", answer=True), UnknownName, "known: api, store"),
            (Wanted(build=BUILD, task="api", attempt=9, log=True), InvalidInput, "has 2 attempts, not 9"),
            (Wanted(build=BUILD, packet="q7"), UnknownName, "known: q1"),
            (Wanted(build=BUILD, packet="0123"), UnknownName, "known: q1"),
            (Wanted(build="build-calc-9"), UnknownName, "known: build-calc-1"),
        ],
        ids=lambda value: value.build if isinstance(value, Wanted) else "",
    )
    async def test_what_is_not_there_is_told_with_what_is(
        self, settings: Settings, wanted: Wanted, error: type[Exception], sentence: str
    ) -> None:
        await keep(settings, whole())
        with pytest.raises(error, match=re.escape(sentence)):
            await show(settings, wanted)

    async def test_nothing_yet_is_no_error(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        await keep(settings, waiting()[:9])
        assert await show(settings, Wanted(build=BUILD, diff=True)) == 0
        assert "has no such diff yet" in capsys.readouterr().err

    async def test_the_whole_build_is_one_json_object(self, settings: Settings, printed: Read) -> None:
        await keep(settings, whole())
        await show(settings, Wanted(build=BUILD, json=True))
        details = json.loads(printed())
        assert [attempt["phase"] for attempt in details["tasks"]["api"]["attempts"]] == ["red", "green"]
        assert details["tasks"]["store"]["merge"]["green"] is True
        assert details["asks"]["q1"]["choice"] == "approve"


class TestStatus:
    async def test_what_waits_is_told_with_the_commands(self, settings: Settings, printed: Read) -> None:
        await keep(settings, waiting())
        await one(settings, BUILD, json=False)
        text = printed()
        assert "waits for a person: 2 tasks, tests green (q1, digest 0123456789ab" in text
        assert "    mendwork approve build-calc-1 0123456789ab" in text
        await many(settings, project="", limit=5, json=False)
        assert "(waits for a person: q1)" in printed()

    async def test_a_script_reads_it_too(self, settings: Settings, printed: Read) -> None:
        await keep(settings, waiting())
        await one(settings, BUILD, json=True)
        ask = json.loads(printed())["asks"][0]
        assert (ask["id"], ask["kind"], ask["how"][0]) == ("q1", "approval", f"mendwork approve {BUILD} 0123456789ab")
        await many(settings, project="", limit=5, json=True)
        assert json.loads(printed())[0]["asks"] == ["q1"]

    async def test_a_partial_build_says_what_is_missing_and_why(self, settings: Settings, printed: Read) -> None:
        root, missing = Saga("run-1"), [{"task": "api", "why": "skipped by ann"}]
        ended = root.note(9999, "build.ended", status="partial", sentence="on x", missing=missing)
        root.sequence = 0
        await keep(settings, [*begun(root), replace(ended, sequence=99)])
        await one(settings, BUILD, json=False)
        assert "  missing: api: skipped by ann" in printed()
        await one(settings, BUILD, json=True)
        assert json.loads(printed())["missing"] == missing

    async def test_a_damaged_build_does_not_hide_the_others(self, settings: Settings, printed: Read) -> None:
        other = [replace(e, build="build-calc-2", first_run=f"2{e.first_run}") for e in waiting()]
        await keep(settings, [*waiting(), *other])
        damage(settings, "data = '{}'", f"build = '{BUILD}' AND kind = 'ask.opened'")
        with pytest.raises(EventUnreadable):
            await one(settings, BUILD, json=False)
        await many(settings, project="", limit=5, json=False)
        first, second = sorted(printed().splitlines())
        assert "its log is damaged" in first
        assert "(waits for a person: q1)" in second


def damage(settings: Settings, change: str, where: str) -> None:
    with sqlite3.connect(settings.state / "mendwork.db") as connection:
        assert connection.execute(f"UPDATE events SET {change} WHERE {where}").rowcount == 1  # noqa: S608 - ours
    connection.close()


class TestTrace:
    async def test_is_a_line_a_node(self, settings: Settings, printed: Read) -> None:
        await keep(settings, whole())
        assert await trace(settings, TraceWanted(build=BUILD)) == 0
        lines = printed().splitlines()
        assert lines[0].split("  ")[1:5] == [BUILD, "succeeded", "+0.0 s", "9.3 s"]
        assert any("├─ ask change q1" in line or "└─ ask change q1" in line for line in lines)
        tasks = [line for line in lines if re.search(r"─ (api|store)  merged", line)]
        assert len(tasks) == 2
        assert all("600 + 60 tokens  $0.0060" in line for line in lines[:1])

    async def test_a_part_is_what_was_asked_for(self, settings: Settings, printed: Read) -> None:
        await keep(settings, whole())
        await trace(settings, TraceWanted(build=BUILD, phase="tasks", task="store", jsonl=True))
        events = [from_line(json.loads(line)) for line in printed().splitlines()]
        assert {event.task for event in events} == {"store"}
        assert len(events) == sum(event.task == "store" for event in whole())
        await trace(settings, TraceWanted(build=BUILD, phase="review"))
        assert "store" not in printed()

    async def test_json_lines_are_the_log(self, settings: Settings, printed: Read) -> None:
        await keep(settings, whole())
        await trace(settings, TraceWanted(build=BUILD, jsonl=True))
        events = [from_line(json.loads(line)) for line in printed().splitlines()]
        assert sorted(events, key=lambda e: e.key) == sorted(whole(), key=lambda e: e.key)

    async def test_the_tree_is_one_json_object(self, settings: Settings, printed: Read) -> None:
        await keep(settings, reset())
        await trace(settings, TraceWanted(build=BUILD, json=True))
        assert json.loads(printed()) == json.loads(json.dumps({"v": 1, **asdict(fold_trace(BUILD, reset()))}))

    @pytest.mark.parametrize(
        ("wanted", "error", "sentence"),
        [
            (TraceWanted(build="build-calc-9"), UnknownName, "known: build-calc-1"),
            (TraceWanted(build=BUILD, task="apy"), UnknownName, "known: api, store"),
            (TraceWanted(build=BUILD, phase="task"), UnknownName, "known: approve, base, intake"),
            (TraceWanted(build=BUILD, json=True, jsonl=True), InvalidInput, "ask for one"),
        ],
        ids=["build", "task", "phase", "both"],
    )
    async def test_what_is_not_there_is_told_with_what_is(
        self, settings: Settings, wanted: TraceWanted, error: type[Exception], sentence: str
    ) -> None:
        await keep(settings, whole())
        with pytest.raises(error, match=re.escape(sentence)):
            await trace(settings, wanted)

    def test_no_text_of_a_model_leaves_its_line(self) -> None:
        bad = Saga("r").note(5, "change.refused", task="api", attempt=1, reason="x\n\x1b[2J" + "y" * 500)
        lines = list(tree_lines(fold_trace(BUILD, [bad]), now=9))
        assert all(line.isprintable() for line in lines)
        assert max(map(len, lines)) < 300

    @pytest.mark.parametrize(
        ("millis", "text"),
        [(-1, "0.0 s"), (800, "0.8 s"), (310_000, "5.2 min"), (5_400_000, "90.0 min"), (9e6, "2.5 h")],
    )
    def test_times_are_told_in_the_unit_that_fits(self, millis: int, text: str) -> None:
        assert seconds(millis) == text


class TestRebuildFromExports:
    @pytest.fixture
    def export(self, tmp_path: Path) -> Path:
        """What `temporal workflow show -o json` gives, with payloads in short."""
        inputs = [[{"events": [asdict(event) for event in whole()]}], [{"events": [asdict(whole()[0])]}]]
        scheduled = [{"activityType": {"name": "record_events"}, "input": given} for given in inputs]
        path = tmp_path / "export.json"
        path.write_text(json.dumps({"events": [{"activityTaskScheduledEventAttributes": each} for each in scheduled]}))
        return path

    async def test_a_damaged_log_is_whole_again(self, settings: Settings, export: Path, printed: Read) -> None:
        await keep(settings, whole())
        damage(settings, "data = '{}'", "kind = 'build.ended'")
        assert await rebuild(settings, RebuildWanted(files=(export,), dry_run=True)) == 0
        assert "1 mended (nothing was changed)" in printed()
        assert await rebuild(settings, RebuildWanted(files=(export,))) == 0
        assert printed() == f"{BUILD}: {len(whole()) - 1} rows are as the histories have them; 1 mended\n"
        await one(settings, BUILD, json=False)

    async def test_what_differs_is_named(
        self, settings: Settings, export: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        newer = Saga("run-9").note(99_999, "task.waits", task="api", holder="store", files=[])
        await keep(settings, [*whole()[30:], newer])
        await rebuild(settings, RebuildWanted(files=(export,)))
        said = capsys.readouterr()
        assert "run-9/run-9/1 is in the log and in no history that was read: it stays" in said.err
        assert "and 10 more added" in said.err
        assert said.out.endswith("30 added, 1 kept\n")

    async def test_a_script_gets_the_keys(self, settings: Settings, export: Path, printed: Read) -> None:
        await keep(settings, whole()[:-1])
        await rebuild(settings, RebuildWanted(build=BUILD, files=(export,), json=True))
        said = json.loads(printed())
        assert (said["build"], said["added"], said["kept"]) == (BUILD, [["run-1", "run-1", 27]], [])

    @pytest.mark.parametrize(
        ("wanted", "sentence"),
        [
            (RebuildWanted(), "name a BUILD"),
            (RebuildWanted(files=(Path("/nowhere/x.json"),)), "/nowhere/x.json cannot be read: No such file"),
            (RebuildWanted(build="build-calc-9", files=(Path("export.json"),)), "tells of build-calc-9"),
        ],
        ids=["nothing", "no file", "another build"],
    )
    async def test_what_cannot_be_read_is_told(
        self, settings: Settings, export: Path, wanted: RebuildWanted, sentence: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(export.parent)
        with pytest.raises(InvalidInput, match=re.escape(sentence)):
            await rebuild(settings, wanted)
