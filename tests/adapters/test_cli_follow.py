"""Following a build: what is shown, when it comes back, and with which code."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from temporalio.client import Client, WorkflowExecutionStatus

from adapters.cli import follow as following
from adapters.cli.follow import Following, follow, follow_as, watch
from adapters.cli.log import source
from adapters.cli.log.screens import JsonScreen, LineScreen
from adapters.cli.log.watch import LiveScreen, clock_text
from adapters.settings import Settings
from adapters.store import open_store
from adapters.store.arrivals.memory import MemoryArrivals
from adapters.store.memory import MemoryEventLog, MemoryStore
from domain.build.details import fold_details
from domain.errors import ServerUnavailable, StoreUnavailable
from domain.ports.store import Event
from domain.trace.lines import from_line
from domain.trace.parts import BuildDetails
from tests.domain.trace_stories import ASK, BUILD, PLANNED, Saga, begun, reset, waiting, whole, written


class Server:
    """A client as far as following needs one: it tells whether the workflow runs."""

    def __init__(self, status: WorkflowExecutionStatus = WorkflowExecutionStatus.RUNNING) -> None:
        self.status = status

    @property
    def client(self) -> Client:
        return cast(Client, self)

    def get_workflow_handle(self, build: str) -> Any:
        return self

    async def describe(self) -> Any:
        return SimpleNamespace(status=self.status)


class Recorded:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = 0

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        self.events += events

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    async with MemoryStore() as store:
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(following, "IDLE_POLL_SECONDS", 0.01)


async def followed(store: MemoryStore, **how: Any) -> int:
    screen = how.pop("screen", None) or Recorded()
    async with asyncio.timeout(60):
        return await follow_as(
            store, BUILD, client=Server().client, how=Following(screen=screen, **{"wait": True, **how})
        )


class TestTheEnd:
    @pytest.mark.parametrize(
        ("status", "fault", "code"),
        [
            ("succeeded", "", 0),
            ("partial", "", 6),
            ("escalated", "Escalated", 8),
            ("aborted", "Aborted", 3),
            ("failed", "ModelsExhausted", 5),
        ],
    )
    async def test_is_told_by_the_exit_code(self, store: MemoryStore, status: str, fault: str, code: int) -> None:
        root = Saga("r")
        await store.events.append(
            [*begun(root), root.note(5000, "build.ended", status=status, sentence="", fault=fault)]
        )
        assert await followed(store) == code

    @pytest.mark.parametrize(
        ("kinds", "code"),
        [
            (["CredentialsRefused"], 4),
            (["RateLimited", "CredentialsRefused"], 4),
            (["CredentialsRefused", "ProviderUnavailable"], 5),
            (["ProviderRefused"], 5),  # what versions before this code called a key that was refused
        ],
    )
    @pytest.mark.parametrize("place", ["the plan", "a task"])
    async def test_for_a_key_that_was_refused_last_is_told_by_a_code_of_its_own(
        self, store: MemoryStore, place: str, kinds: list[str], code: int
    ) -> None:
        root, task = Saga("r"), Saga("t", task="api")
        events = begun(root)
        faults = [{"kind": kind, "sentence": "no", "source": "m", "number": 1} for kind in kinds]
        if place == "the plan":
            events = [*events[:6], root.note(900, "call.failed", attempt=1, **{**PLANNED, "faults": faults})]
        else:
            passed = [{"kind": "ServerUnavailable", "sentence": "", "source": "m", "number": 1}]
            events.append(root.note(1000, "call.failed", attempt=2, **{**PLANNED, "faults": passed}))
            events.append(task.note(1100, "call.failed", attempt=1, step="change", model="m", faults=faults))
            events.append(root.note(1200, "task.skipped", task="api", sentence="nobody"))
        end = root.note(5000, "build.ended", status="failed", sentence="", fault="ModelsExhausted")
        await store.events.append([*events, end])
        assert await followed(store) == code

    async def test_is_not_laid_on_a_key_where_something_else_ended_the_build(self, store: MemoryStore) -> None:
        root = Saga("r")
        fault = {"kind": "CredentialsRefused", "sentence": "no", "source": "m", "number": 1}
        refused = root.note(4000, "call.failed", attempt=1, **{**PLANNED, "faults": [fault]})
        end = root.note(5000, "build.ended", status="failed", sentence="", fault="InvalidPlan")
        await store.events.append([*begun(Saga("b")), refused, end])
        assert await followed(store) == 5

    async def test_puts_the_name_on_stdout_and_the_story_on_stderr(
        self, store: MemoryStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(whole())
        assert await follow(store, BUILD, client=None, json=False) == 0
        printed = capsys.readouterr()
        assert printed.out == f"{BUILD}\n"
        assert "store: conflicts when merged: a.py" in printed.err
        assert printed.err.splitlines()[-1] == "succeeded: on main"

    async def test_prints_every_event_as_a_json_line(
        self, store: MemoryStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(whole())
        assert await follow(store, BUILD, client=None, json=True) == 0
        lines = [from_line(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
        assert lines == whole()

    async def test_is_waited_for_while_events_come(self, store: MemoryStore) -> None:
        story, screen = whole(), Recorded()
        await store.events.append(story[:5])

        async def record() -> None:
            for event in story[5:]:
                await asyncio.sleep(0)
                await store.events.append([event])

        code, _ = await asyncio.gather(followed(store, screen=screen), record())
        assert code == 0
        assert screen.events == story
        assert screen.closed

    async def test_of_a_build_that_was_reset_is_not_the_one_before(self, store: MemoryStore) -> None:
        await store.events.append(reset())
        assert await followed(store, wait=False) == 7

    async def test_is_known_without_a_server_and_a_reset_build_has_none_yet(self, settings: Settings) -> None:
        async with await open_store(settings.store_url) as store:
            await store.events.append(whole())
            assert await watch(settings, BUILD, json=True) == 0
            back = Saga("run-2", first_run="run-1", sequence=22)
            await store.events.append([back.note(20_000, "ask.opened", **ASK)])
        with pytest.raises(ServerUnavailable):
            await watch(settings, BUILD, json=True)

    @pytest.mark.parametrize(("story", "sentence"), [(whole()[:9], "without a word"), ([], "not in the store")])
    async def test_of_a_workflow_that_says_nothing_is_told(
        self, store: MemoryStore, story: list[Event], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(story)
        over = Server(WorkflowExecutionStatus.TERMINATED).client
        assert await follow_as(store, BUILD, client=over, how=Following(screen=Recorded(), wait=True)) == 1
        assert sentence in capsys.readouterr().err


class TestAnAsk:
    async def test_that_nobody_can_be_asked_brings_it_back_with_the_commands(
        self, store: MemoryStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(waiting())
        assert await follow(store, BUILD, client=Server().client, json=False) == 7  # pytest's stdin is no terminal
        printed = capsys.readouterr()
        assert "mendwork approve build-calc-1 0123456789ab" in printed.err
        assert "mendwork reject build-calc-1 0123456789ab" in printed.err
        assert printed.out == f"{BUILD}\n"

    async def test_that_an_answer_of_before_closes_at_once_is_no_reason_to_come_back(self, store: MemoryStore) -> None:
        await store.events.append(waiting())

        class Answering(Recorded):
            def show(self, events: Sequence[Event], details: BuildDetails) -> None:
                if details.open_asks() and not self.events:
                    self.answer = asyncio.ensure_future(store.events.append(whole()))
                super().show(events, details)

        assert await followed(store, screen=Answering(), wait=False) == 0

    async def test_is_no_end_while_a_sibling_is_at_work(self, store: MemoryStore) -> None:
        root = Saga("run-1")
        question: dict[str, Any] = {**ASK, "about": "task", "kind": "question", "choices": ["skip"]}
        await store.events.append(
            [
                *begun(root),
                root.note(2000, "ask.opened", task="api", **question),
                Saga("s", task="store").note(2001, "task.started", base="c", first=1),
            ]
        )
        left = asyncio.create_task(followed(store, wait=False))
        done, _ = await asyncio.wait([left], timeout=0.3)
        assert not done
        await store.events.append([root.note(3000, "task.merged", task="store", commit="m", ran=3)])
        assert await left == 7

    async def test_is_told_to_the_dialogue_once_and_only_while_it_is_open(self, store: MemoryStore) -> None:
        asked: list[str] = []
        story = whole()
        await store.events.append([event for event in story if event.kind not in ("ask.closed", "build.ended")])

        async def on_ask(event: Event) -> None:
            asked.append(event.data["id"])
            await store.events.append(story)

        screen = Recorded()
        assert await followed(store, screen=screen, on_ask=on_ask) == 0
        assert asked == ["q1"]
        assert await followed(store, on_ask=on_ask) == 0
        assert asked == ["q1"], "it is closed now"

    async def test_is_waited_for_by_watch(self, store: MemoryStore) -> None:
        await store.events.append(waiting())
        asked = asyncio.create_task(followed(store))
        done, _ = await asyncio.wait([asked], timeout=0.3)
        assert not done
        await store.events.append(whole())
        assert await asked == 0


class TestLeaving:
    async def test_by_ctrl_c_says_how_to_come_back(
        self, store: MemoryStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(waiting())
        screen = Recorded()
        task = asyncio.create_task(followed(store, screen=screen))
        await asyncio.sleep(0.05)
        task.cancel()
        assert await task == 130
        assert f"mendwork watch {BUILD}" in capsys.readouterr().err
        assert screen.closed


class Away:
    """An event log whose store is away for the next ``looks``."""

    def __init__(self, log: MemoryEventLog, looks: int) -> None:
        self._log = log
        self.looks = looks

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        self.looks -= 1
        if self.looks >= 0:
            raise StoreUnavailable("the store cannot be reached: it restarts")
        return await self._log.read(build, after=after)


class TestOutages:
    async def test_of_the_store_are_waited_for_and_told_once(
        self, store: MemoryStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await store.events.append(whole())
        screen = Recorded()
        store.events = cast(MemoryEventLog, Away(store.events, 5))
        assert await followed(store, screen=screen) == 0
        assert screen.events == whole()
        said = capsys.readouterr().err.splitlines()
        assert said == ["the store cannot be reached: it restarts; it is asked again for 120 s", "the store is back"]

    async def test_that_last_for_too_long_end_it_with_the_fault(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "OUTAGE_SECONDS", 0.05)
        store.events = cast(MemoryEventLog, Away(store.events, 1_000_000))
        screen = Recorded()
        with pytest.raises(StoreUnavailable, match="it restarts"):
            await followed(store, screen=screen)
        assert screen.closed

    async def test_while_it_waits_are_waited_for_too(self, store: MemoryStore) -> None:
        class Cut:
            async def wait(self, build: str, *, after: int, seconds: float) -> bool:
                raise StoreUnavailable("the store cannot be reached: it restarts")

        await store.events.append(waiting())
        store.arrivals = cast(MemoryArrivals, Cut())
        screen = Recorded()
        follows = asyncio.create_task(followed(store, screen=screen))
        await asyncio.sleep(0.05)
        await store.events.append(whole())
        assert await follows == 0
        assert screen.events == whole()


class TestWaking:
    async def test_is_by_what_is_appended_and_not_by_the_clock(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(following, "POLL_SECONDS", 1000.0)
        story = whole()
        await store.events.append(story[:5])
        follows = asyncio.create_task(followed(store))
        for event in story[5:]:
            await asyncio.sleep(0.001)
            await store.events.append([event])
        assert await follows == 0

    async def test_asks_the_store_nothing_while_nothing_comes(self, store: MemoryStore) -> None:
        await store.events.append(waiting())
        looks = Away(store.events, 0)
        store.events = cast(MemoryEventLog, looks)
        follows = asyncio.create_task(followed(store))
        await asyncio.sleep(0.5)
        follows.cancel()
        assert await follows == 130
        assert looks.looks == -1, "read once"


class TestSilence:
    def test_is_told_ever_more_rarely(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen, details = LineScreen(), fold_details(BUILD, whole()[:9])
        for _ in range(400):
            screen.show([], details)
        assert capsys.readouterr().err.splitlines() == ["  … still at it"] * 4  # after 50, 100, 200 and 400 looks

    def test_says_what_is_waited_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen, details = LineScreen(), fold_details(BUILD, waiting())
        for _ in range(50):
            screen.show([], details)
        assert capsys.readouterr().err == "  … waits for approval of the change (q1)\n"

    def test_is_silence_in_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        JsonScreen().show([], fold_details(BUILD, waiting()))
        assert capsys.readouterr() == ("", "")


class TestLive:
    @pytest.fixture
    def screen(self, make_settings: Any) -> LiveScreen:
        settings: Settings = make_settings(projects={"calc": {"repository": "x", "test": "t"}})
        self.written = io.StringIO()
        console = Console(file=self.written, width=120, force_terminal=True, color_system=None)
        return LiveScreen(settings, console=console, clock=lambda: 61_010)

    def drawn(self, screen: LiveScreen, events: list[Event]) -> str:
        console = Console(file=io.StringIO(), width=120, color_system=None)
        with console.capture() as capture:
            console.print(screen.draw(fold_details(BUILD, events)))
        return capture.get()

    def test_shows_tasks_attempts_tests_money_and_limits(self, screen: LiveScreen) -> None:
        root = Saga("run-1")
        story = sorted([*begun(root), *written(root)], key=lambda event: event.at)[:24]
        text = self.drawn(screen, story)
        assert "build-calc-1  running  tasks  1:01  Tags" in text
        api, store = text.splitlines()[2:4]
        assert api.split() == ["api", "▶", "running", "#1", "red", "1", "of", "4", "tests", "failed", "The", "api"]
        assert "running the tests" in store
        calls = [event.data["usage"]["cost_micros"] for event in story if event.kind == "call.answered"]
        assert f"${sum(calls) / 1_000_000:.4f} in {len(calls)} calls; limits: task $2, build $10, day $50" in text

    def test_shows_what_waits_and_the_command_that_answers_it(self, screen: LiveScreen) -> None:
        text = self.drawn(screen, waiting())
        assert "waits for you: 2 tasks, tests green" in text
        assert "mendwork approve build-calc-1 0123456789ab" in text

    def test_shows_limits_as_they_were_raised(self, screen: LiveScreen) -> None:
        root = Saga("run-1")
        story = [*begun(root), root.note(2000, "limits.raised", by="ann", build_budget=25.0, task_budget=0.0)]
        assert "build $25, day" in self.drawn(screen, story)

    def test_says_that_a_build_is_paused(self, screen: LiveScreen) -> None:
        root = Saga("run-1")
        assert "build-calc-1  paused" in self.drawn(screen, [*begun(root), root.note(2000, "build.paused", by="ann")])

    def test_takes_no_markup_and_no_escape_codes_from_a_model(self, screen: LiveScreen) -> None:
        root = Saga("run-1")
        bad = "[bold red]x[/] \x1b[2J[link=http://evil]"
        story = [*begun(root), root.note(2000, "task.skipped", task="api", sentence=bad)]
        text = self.drawn(screen, story)
        assert "[bold red]x[/]" in text
        assert "\x1b" not in text

    def test_draws_again_and_leaves_the_last_picture(self, screen: LiveScreen) -> None:
        for cut in (5, 20, len(whole())):
            screen.show(whole()[:cut], fold_details(BUILD, whole()[:cut]))
        screen.close()
        screen.close()
        assert "succeeded" in self.written.getvalue()

    @pytest.mark.parametrize(("millis", "text"), [(-5, "0:00"), (61_000, "1:01"), (3_723_000, "1:02:03")])
    def test_tells_time_as_a_clock_does(self, millis: int, text: str) -> None:
        assert clock_text(millis) == text
