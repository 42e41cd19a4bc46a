"""A person at a terminal is asked, sees what it is about, and answers in words; or somebody else is faster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from temporalio.client import Client

from adapters.cli.decide import answers
from adapters.cli.decide.answers import Decision
from adapters.cli.decide.dialogue import Desk, Dialogue
from adapters.cli.decide.terminal import is_terminal, page, read_line
from adapters.settings import Settings
from domain.ports.store import Event
from tests.adapters.deciding import Office, Rulings, office, ruling
from tests.adapters.terminals import Terminal, terminal
from tests.conftest import TemporalServer

DIFF = "".join(f"+line {n}\n" for n in range(100))
APPROVAL = "approve | reject REASON | diff | later? "
QUESTION = "retry [HINT] | raise USD | skip | take COMMIT | abort [REASON] | later? "


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    with terminal(monkeypatch) as person:
        yield person


@pytest.fixture
def settings(
    make_settings: Callable[..., Settings], temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    for name, value in temporal.environment.items():
        monkeypatch.setenv(name, value)
    return make_settings()


@contextlib.asynccontextmanager
async def asking(at: Office, event: Event) -> AsyncIterator[asyncio.Task[None]]:
    """The dialogue about one ask; it has to end by itself."""
    desk = Desk(settings=at.settings, client=at.client, store=at.store, blobs=at.blobs, by="ann")
    task = asyncio.ensure_future(Dialogue(desk, at.build)(event))
    try:
        yield task
        async with asyncio.timeout(60):
            await task
    finally:
        task.cancel()


@contextlib.asynccontextmanager
async def asked_for_the_change(
    client: Client, settings: Settings, rulings: Rulings | None = None, *, diff: str = DIFF
) -> AsyncIterator[Office]:
    async with office(client, settings, rulings) as at, asking(at, await at.asked_for_the_change(diff)):
        yield at


class TestAnApproval:
    async def test_shows_what_it_is_about_before_it_asks(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        async with asked_for_the_change(client, settings) as at:
            shown = await tty.until(APPROVAL)
            assert f"{at.build} asks for your approval of the change  (change-2, digest " in shown
            assert "what about the change?" in shown
            assert "+line 39\n" in shown
            assert "+line 40\n" not in shown
            assert "… 60 more lines: `diff` shows them all" in shown
            tty.type("later")

    @pytest.mark.parametrize("typed", ["a", "approve", "APPROVE", "app"])
    async def test_is_given_by_a_word_or_its_first_letters(
        self, client: Client, settings: Settings, tty: Terminal, typed: str
    ) -> None:
        async with asked_for_the_change(client, settings) as at:
            await tty.until(APPROVAL)
            tty.type(typed)
            await tty.until("accepted: approve accepted")
            told = (await at.heard())[0]
            assert told[1] == "approve"
            assert len(at.words(told)["digest"]) == 64

    async def test_is_refused_with_a_reason_typed_at_once_or_when_asked_for(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        async with asked_for_the_change(client, settings) as at:
            await tty.until(APPROVAL)
            tty.type("reject")
            await tty.until("reject needs a reason: it goes back into planning: ")
            tty.type("")
            await tty.until(APPROVAL)
            tty.type("r  it has no tests ")
            await tty.until("accepted: reject accepted")
            assert [told[2]["reason"] for told in await at.heard()] == ["it has no tests"]

    async def test_shows_the_whole_diff_in_pages(self, client: Client, settings: Settings, tty: Terminal) -> None:
        async with asked_for_the_change(client, settings):
            await tty.until(APPROVAL)
            tty.type("diff")
            shown = await tty.until(" more lines: Enter shows them, q stops -- ")
            assert "+line 0\n" in shown
            while "+line 99\n" not in shown:
                tty.type("")
                shown += await tty.until(APPROVAL if "+line 80\n" in shown else "q stops -- ")
            tty.type("later")

    async def test_stays_open_when_it_is_put_off(self, client: Client, settings: Settings, tty: Terminal) -> None:
        async with asked_for_the_change(client, settings) as at:
            await tty.until(APPROVAL)
            tty.type("l")
            await tty.until(f"later, then: `mendwork pending {at.build}` shows the commands")
            assert await at.heard() == []

    async def test_stays_open_when_the_input_is_closed(self, client: Client, settings: Settings, tty: Terminal) -> None:
        async with asked_for_the_change(client, settings) as at:
            await tty.until(APPROVAL)
            tty.close_input()
            await tty.until("later, then")
            assert await at.heard() == []

    async def test_asks_again_after_what_it_does_not_understand(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        async with asked_for_the_change(client, settings) as at:
            for typed in ("yes", "", "\x1b[A", "approved!"):
                await tty.until(APPROVAL)
                tty.type(typed)
                await tty.until("answer with one of approve, reject, diff, later")
            await tty.until(APPROVAL)
            assert await at.heard() == []
            tty.type("later")

    async def test_typed_before_it_was_asked_for_is_no_approval(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        async with office(client, settings) as at:
            event = await at.asked_for_the_change()
            tty.type("approve")
            async with asking(at, event):
                await tty.until("approve | reject REASON | later? ")
                tty.type("later")
            assert await at.heard() == []

    async def test_that_was_refused_says_why_and_asks_again(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        rulings = {"approve": [ruling("refused", "stale: there is a newer one"), ruling("accepted", "fine")]}
        async with asked_for_the_change(client, settings, rulings):
            await tty.until(APPROVAL)
            tty.type("a")
            await tty.until("refused: stale: there is a newer one")
            await tty.until(APPROVAL)
            tty.type("a")
            await tty.until("accepted: fine")

    @pytest.mark.parametrize(
        ("kind", "data", "sentence"),
        [
            (
                "ask.closed",
                {"id": "change-2", "choice": "reject", "by": "b\x1bob"},
                "change-2 is closed: reject by b ob",
            ),
            ("ask.closed", {"id": "change-2", "choice": "expired", "by": ""}, "change-2 is closed: expired"),
            ("build.ended", {"status": "aborted", "sentence": ""}, "is closed: the build has ended (aborted)"),
        ],
    )
    async def test_that_somebody_else_decided_meanwhile_is_not_waited_for(
        self, client: Client, settings: Settings, tty: Terminal, kind: str, data: dict[str, str], sentence: str
    ) -> None:
        async with asked_for_the_change(client, settings) as at:
            await tty.until(APPROVAL)
            await at.note(kind, **data)
            await tty.until(sentence)

    async def test_shows_no_escape_code_of_a_model(self, client: Client, settings: Settings, tty: Terminal) -> None:
        async with asked_for_the_change(client, settings, diff="+\x1b[2J\x1b]0;owned\x07\r-nothing\n"):
            assert "\x1b" not in await tty.until(APPROVAL)
            tty.type("later")


class TestAQuestion:
    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ("retry", {}),
            ("ret use a dict", {"reason": "use a dict"}),
            ("raise 2.50", {"task_budget": 2.5}),
            ("s", {}),
            ("take by-hand", {"commit": "by-hand"}),
            ("ab too dear", {"reason": "too dear"}),
        ],
    )
    async def test_is_answered_by_a_choice_and_what_it_needs(
        self, client: Client, settings: Settings, tty: Terminal, typed: str, words: dict[str, object]
    ) -> None:
        async with office(client, settings) as at, asking(at, event := await at.asked_about_a_task()):
            await tty.until(QUESTION)
            tty.type(typed)
            await tty.until("accepted: answer accepted")
            said = at.words((await at.heard())[0])
            assert said.pop("choice").startswith(typed.split()[0])
            assert said == {"ask": event.data["id"], "by": "ann", **words}

    async def test_asks_for_what_is_missing_and_takes_no_word_for_a_number(
        self, client: Client, settings: Settings, tty: Terminal
    ) -> None:
        async with office(client, settings) as at, asking(at, await at.asked_about_a_task()):
            await tty.until(QUESTION)
            tty.type("r")
            await tty.until("answer with one of")
            await tty.until(QUESTION)
            tty.type("raise")
            await tty.until("raise needs a limit in USD: ")
            tty.type("much")
            await tty.until("much is no number of dollars")
            await tty.until(QUESTION)
            tty.type("skip")
            await tty.until("accepted")
            assert [told[2]["choice"] for told in await at.heard()] == ["skip"]


class TestTheCommandOnATerminal:
    @pytest.mark.parametrize(("typed", "code", "sent"), [("y", 0, 1), ("", 3, 0), ("n", 3, 0), ("nope yes", 3, 0)])
    async def test_approving_without_a_digest_shows_it_and_asks(
        self, client: Client, settings: Settings, tty: Terminal, typed: str, code: int, sent: int
    ) -> None:
        async with office(client, settings) as at:
            event = await at.asked_for_the_change("+new\n")
            decision = Decision(build=at.build, choice="approve", digest="", reason="", by="ann", json=False)
            task = asyncio.ensure_future(answers.decide(settings, decision))
            shown = await tty.until(f"approve the change {event.data['digest'][:12]} of {at.build}? [y/N] ")
            assert "+new\n" in shown
            tty.type(typed)
            assert await task == code
            assert len(await at.heard()) == sent


class TestReading:
    async def test_a_cancelled_question_gives_the_terminal_back(self, tty: Terminal) -> None:
        first = asyncio.ensure_future(read_line("first? "))
        await tty.until("first? ")
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.ensure_future(read_line("second? "))
        await tty.until("second? ")
        tty.type("  yes ")
        assert await second == "yes"

    async def test_a_page_can_be_left(self, tty: Terminal) -> None:
        paging = asyncio.ensure_future(page([f"line {n}" for n in range(500)]))
        await tty.until("q stops -- ")
        tty.type("q")
        await paging
        assert "line 499" not in tty.shown

    def test_a_pipe_is_no_terminal(self, tty: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        assert is_terminal()
        with open("/dev/null") as nothing:
            monkeypatch.setattr("adapters.cli.decide.terminal.sys.stdin", nothing)
            assert not is_terminal()
