"""The commands of decisions against a real server: which ask is meant, what is sent, what comes back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from typer.testing import CliRunner

from adapters.cli.app import app
from adapters.cli.decide import answers, saying, waiting
from adapters.cli.decide.answers import Decision, NewPlan, Reply
from adapters.cli.decide.saying import Said, deliver, tell
from adapters.settings import Settings
from domain.errors import InvalidInput, TooLarge, UnknownName
from tests.adapters.deciding import Office, office, ruling
from tests.conftest import TemporalServer

DECISIONS = ("pending", "approve", "reject", "answer", "edit-plan", "raise", "pause", "resume-now", "abort", "rerun")
PLAN = {
    "summary": "one",
    "tasks": [
        {"id": "mul", "title": "Add", "instructions": "Do.", "files": ["calc.py"], "tests": [], "depends_on": []}
    ],
}


@pytest.fixture
def settings(
    make_settings: Callable[..., Settings], temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Of a folder of the test's own, and of the shared server, whatever this machine's profiles say."""
    for name, value in temporal.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return make_settings()


def decision(
    at: Office, choice: str = "approve", *, digest: str = "", reason: str = "", json: bool = False
) -> Decision:
    return Decision(build=at.build, choice=choice, digest=digest, reason=reason, by="ann", json=json)


def reply(at: Office, choice: str, *, ask: str = "", **changes: Any) -> Reply:
    return Reply(build=at.build, ask=ask, choice=choice, by="ann", json=False, **changes)


class TestDeciding:
    async def test_an_approval_reaches_the_build_with_digest_and_name(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with office(client, settings) as at:
            assert await answers.decide(settings, decision(at, digest=" ABCDEF12 ")) == 0
            heard = await at.heard()
            assert heard[0][:2] == ["update", "approve"]
            assert at.words(heard[0]) == {"digest": "abcdef12", "by": "ann"}
        assert capsys.readouterr().out == "accepted: approve accepted\n"

    async def test_a_refusal_is_told_with_its_reason_and_code_3(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stale = {"reject": [ruling("refused", "stale: \x1b[2Jit was replaced")]}
        async with office(client, settings, stale) as at:
            asked = decision(at, "reject", digest="abcdef12", reason="no", json=True)
            assert await answers.decide(settings, asked) == 3
            assert await answers.decide(settings, decision(at, "reject", digest="abcdef12", reason="no")) == 3
        as_json, as_text = capsys.readouterr().out.splitlines()
        assert json.loads(as_json) == {
            "build": at.build,
            "outcome": "refused",
            "reason": "stale: \x1b[2Jit was replaced",
            "ask": "",
        }
        assert as_text == "refused: stale:  [2Jit was replaced"

    @pytest.mark.parametrize("digest", ["abc", "abcdefg1", "0x123456", "abcdef1"])
    async def test_what_is_no_digest_is_a_usage_error_before_anything_is_sent(
        self, client: Client, settings: Settings, digest: str
    ) -> None:
        async with office(client, settings) as at:
            with pytest.raises(InvalidInput, match="at least 8 hex digits"):
                await answers.decide(settings, decision(at, digest=digest))
            assert await at.heard() == []

    async def test_without_digest_and_terminal_the_missing_argument_is_named(
        self, client: Client, settings: Settings
    ) -> None:
        async with office(client, settings) as at:
            event = await at.asked_for_the_change()
            short = event.data["digest"][:12]
            with pytest.raises(InvalidInput, match=f"DIGEST: .* `mendwork approve {at.build} {short}`"):
                await answers.decide(settings, decision(at))
            assert await at.heard() == []

    async def test_without_digest_there_has_to_be_something_to_approve(
        self, client: Client, settings: Settings
    ) -> None:
        async with office(client, settings) as at:
            await at.asked_about_a_task()
            with pytest.raises(InvalidInput, match="asks for no approval now"):
                await answers.decide(settings, decision(at))


class TestAnswering:
    async def test_the_only_open_question_needs_no_name(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            await at.asked_for_the_change()
            asked = await at.asked_about_a_task()
            assert await answers.reply(settings, reply(at, "retry", hint="use a dict")) == 0
            words = at.words((await at.heard())[0])
            assert words == {"ask": asked.data["id"], "choice": "retry", "by": "ann", "reason": "use a dict"}

    async def test_of_several_the_one_that_is_named_is_answered(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            first, second = await at.asked_about_a_task("api"), await at.asked_about_a_task("web")
            with pytest.raises(InvalidInput, match=f"name one of {first.data['id']}, {second.data['id']}"):
                await answers.reply(settings, reply(at, "skip"))
            await answers.reply(settings, reply(at, "skip", ask=second.data["id"]))
            assert [told[2]["ask"] for told in await at.heard()] == [second.data["id"]]

    async def test_a_question_that_was_closed_meanwhile_is_for_the_build_to_rule_on(
        self, client: Client, settings: Settings
    ) -> None:
        late = {"answer": [ruling("refused", "duplicate: it was answered skip by bob already")]}
        async with office(client, settings, late) as at:
            asked = await at.asked_about_a_task()
            await at.note("ask.closed", task="api", id=asked.data["id"], about="task", choice="skip", by="bob")
            assert await answers.reply(settings, reply(at, "skip", ask=asked.data["id"])) == 3
            with pytest.raises(InvalidInput, match="asks for no answer now"):
                await answers.reply(settings, reply(at, "skip"))

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"choice": "approve"}, "can be answered by retry, raise, skip, take, abort, not by 'approve'"),
            ({"choice": "take"}, "take needs --commit"),
            ({"choice": "raise"}, "raise needs --task-budget"),
            ({"choice": "skip", "ask": "nothing"}, "asks nothing under the name 'nothing'; open: task-2"),
        ],
    )
    async def test_what_cannot_be_an_answer_is_told_before_it_is_sent(
        self, client: Client, settings: Settings, given: dict[str, str], sentence: str
    ) -> None:
        async with office(client, settings) as at:
            await at.asked_about_a_task()
            with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(")):
                await answers.reply(settings, reply(at, **given))
            assert await at.heard() == []

    async def test_a_commit_a_limit_and_more_attempts_are_sent_as_such(
        self, client: Client, settings: Settings
    ) -> None:
        async with office(client, settings) as at:
            await at.asked_about_a_task()
            await answers.reply(settings, reply(at, "take", commit="by-hand"))
            await answers.reply(settings, reply(at, "raise", task_budget=2.5, attempts=5))
            take, more = map(at.words, await at.heard())
            assert take["commit"] == "by-hand"
            assert (more["task_budget"], more["attempts"]) == (2.5, 5)

    async def test_an_unknown_build_is_told_with_those_that_are_known(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            with pytest.raises(UnknownName, match=f"unknown build 'build-x-1'; known: {at.build}"):
                await answers.reply(settings, Reply(build="build-x-1", ask="", choice="skip", by="ann", json=False))


class TestSaying:
    async def test_without_a_worker_it_is_kept_as_a_signal_and_said_so(
        self, client: Client, settings: Settings
    ) -> None:
        async with office(client, settings, served=False) as at:
            said = Said(build=at.build, what="approve", words={"digest": "abcdef12"})
            answered = await deliver(settings, client, said, patience=0.3)
            assert answered.outcome == "sent"
            assert "no worker answered within 0.3 s" in answered.reason
            history = await at.handle.fetch_history()
            signals = [
                event for event in history.events if event.HasField("workflow_execution_signaled_event_attributes")
            ]
            assert len(signals) == 1

    async def test_what_the_build_calls_malformed_is_a_usage_error(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            said = Said(build=at.build, what="approve", words={"reason": "nonsense"})
            with pytest.raises(InvalidInput, match="the reason is nonsense"):
                await deliver(settings, client, said)

    async def test_a_build_that_has_ended_hears_nothing_more(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with office(client, settings) as at:
            await at.note("build.ended", status="escalated", sentence="nobody approved it")
            await at.handle.signal("end")
            await at.handle.result()
            assert await tell(settings, Said(build=at.build, what="abort", words={}), json=False) == 3
        assert "has ended (escalated): this comes too late" in capsys.readouterr().out

    async def test_a_terminated_build_is_told_as_such(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            await at.handle.terminate()
            answered = await deliver(settings, client, Said(build=at.build, what="abort", words={}))
            assert answered.outcome == "refused"
            assert "was terminated; what it left is undone by the sweeper" in answered.reason

    async def test_a_build_that_nobody_knows_is_an_unknown_name(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            with pytest.raises(UnknownName, match=f"known: {at.build}"):
                await deliver(settings, client, Said(build="build-x-1", what="pause", words={}))

    async def test_more_than_a_history_may_hold_is_refused_here(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            said = Said(build=at.build, what="edit_plan", words={"plan": "x" * 300_000})
            with pytest.raises(TooLarge, match="at most 256000 bytes"):
                await deliver(settings, client, said)

    @pytest.mark.parametrize("raw", [None, "done", {}, {"outcome": None, "reason": 3}])
    def test_an_answer_of_another_version_is_understood_as_far_as_possible(self, raw: Any) -> None:
        assert saying._answered(raw).outcome == "accepted"


class TestPending:
    async def test_every_open_ask_is_shown_with_the_commands_that_answer_it(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with office(client, settings) as one, office(client, settings) as two:
            asked = await one.asked_for_the_change()
            await two.asked_about_a_task()
            assert await waiting.pending(settings, "", json=False) == 0
            shown = capsys.readouterr().out
            assert f"mendwork approve {one.build} {asked.data['digest'][:12]}" in shown
            assert f"mendwork answer {two.build} task-2 skip" in shown
            await waiting.pending(settings, two.build, json=True)
            listed = json.loads(capsys.readouterr().out)
            assert [(each["build"], each["id"], each["kind"]) for each in listed] == [(two.build, "task-2", "question")]
            assert len(listed[0]["commands"]) == len(listed[0]["choices"]) == 5

    async def test_builds_that_ended_and_asks_that_were_answered_wait_no_more(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with office(client, settings) as one, office(client, settings) as two:
            await one.asked_for_the_change()
            await one.note("build.ended", status="aborted", sentence="it was terminated")
            asked = await two.asked_about_a_task()
            await two.note("ask.closed", task="api", id=asked.data["id"], about="task", choice="skip", by="bob")
            assert await waiting.pending(settings, "", json=False) == 0
        caught = capsys.readouterr()
        assert (caught.out, caught.err) == ("", "nothing waits for a person\n")


class TestEditingThePlan:
    async def test_without_a_file_the_plan_is_printed_and_comes_back_as_it_was(
        self, client: Client, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with office(client, settings) as at:
            digest = await at.pack(PLAN)
            await at.note("build.planned", plan=digest, tasks=[{"id": "mul", "title": "Add", "depends_on": []}])
            assert await answers.edit_plan(settings, NewPlan(build=at.build, file="", by="ann", json=False)) == 0
            file = tmp_path / "plan.json"
            file.write_text(capsys.readouterr().out)
            given = NewPlan(build=at.build, file=str(file), by="ann", json=False)
            assert await answers.edit_plan(settings, given) == 0
            assert (await at.heard())[0][2] == {"plan": PLAN, "by": "ann"}

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [("{", "cannot be used"), ('{"summary": "x"}', "cannot be used"), ("x" * 200_001, "at most 200000")],
    )
    async def test_a_plan_that_is_none_is_told_before_it_is_sent(
        self, client: Client, settings: Settings, tmp_path: Path, text: str, sentence: str
    ) -> None:
        (tmp_path / "plan.json").write_text(text)
        async with office(client, settings) as at:
            given = NewPlan(build=at.build, file=str(tmp_path / "plan.json"), by="ann", json=False)
            with pytest.raises((InvalidInput, TooLarge), match=sentence):
                await answers.edit_plan(settings, given)
            assert await at.heard() == []

    async def test_a_build_without_plan_has_none_to_print(self, client: Client, settings: Settings) -> None:
        async with office(client, settings) as at:
            with pytest.raises(InvalidInput, match="has no plan yet"):
                await answers.edit_plan(settings, NewPlan(build=at.build, file="", by="ann", json=False))


class TestTheCommandLine:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["approve"],
            ["reject", "build-a-1", "abcdef12"],
            ["answer", "build-a-1"],
            ["answer", "build-a-1", "task-1", "retry", "please"],
            ["answer", "build-a-1", "raise", "--task-budget", "-1"],
            ["raise", "build-a-1"],
            ["raise", "build-a-1", "--build-budget", "much"],
            ["abort"],
            ["rerun"],
            ["reconcile", "key"],
        ],
        ids=" ".join,
    )
    def test_what_is_incomplete_is_a_usage_error_before_anything_is_read(self, arguments: list[str]) -> None:
        ran = CliRunner().invoke(app, arguments)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "Usage: " in ran.stderr

    @pytest.mark.parametrize("name", [*DECISIONS, "trace", "cost", "reconcile", "events"])
    def test_every_command_explains_itself(self, name: str) -> None:
        ran = CliRunner().invoke(app, [name, "--help"])
        assert ran.exit_code == 0
        assert len(ran.stdout) > 200
