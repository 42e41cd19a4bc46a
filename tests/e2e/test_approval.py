"""A person's consent to the change: given by any of three ways, once, to what was shown; and what silence means."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace as altered
from typing import Any

import pytest

from adapters.compliance.user_repository import contents
from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    change,
    create,
    plan,
    repository,
    result,
    serving,
    started,
    task,
    told,
    waiting,
)
from tests.e2e.test_temporal_cli import content_of, temporal
from tests.e2e.workshop import DEV, Workshop, git, wait_for
from tests.trees import files_below

ASKED = 'approve = ["change"]\nreview = false\n'
CONSENT = Scene(
    name="consent",
    consent=ASKED,
    builds=10,
    answers=[
        plan(task("note", "note.py")),
        change("note", 1, create("note.py", "N = 1\n")),
        plan(task("better", "better.py"), attempt=2),
        change("better", 1, create("better.py", "N = 2\n")),
    ],
)
SILENT = altered(CONSENT, name="silent", builds=1, consent=f"{ASKED}approval_seconds = 2\n")
EARLY = altered(
    CONSENT,
    name="early",
    builds=2,
    consent='approve = ["plan"]\nreview = false\n',
)
BUILDS = ("by-command", "by-signal", "by-update", "rejected", "twice", "repeated", "race", "abort", "overlap")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("approval"), (CONSENT, SILENT, EARLY), dev=DEV) as at:
        yield at


@pytest.fixture(scope="module")
def builds(at: Workshop) -> dict[str, str]:
    """Builds that work side by side until each waits for its approval."""
    return {name: begun(at, CONSENT) for name in BUILDS}


@pytest.fixture
def ask(at: Workshop, builds: dict[str, str], request: pytest.FixtureRequest) -> dict[str, Any]:
    """The approval that the build of the test's parameter waits for."""
    return waiting(at, builds[request.param])


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("ask", [name], indirect=True, ids=[name])


def landed(at: Workshop, build: str) -> bool:
    return git(repository(at, CONSENT), "for-each-ref", f"refs/heads/mendwork/{build}") != ""


def refusals(at: Workshop, build: str) -> list[str]:
    """Why answers did not count, as the log has it."""
    return [data["reason"] for data in told(at, build, "answer.refused")]


class TestApproving:
    def test_a_build_that_nobody_can_be_asked_about_comes_back_with_7_and_the_commands(self, at: Workshop) -> None:
        ran = at.mendwork("build", "spec.md", "--project", CONSENT.project)
        build = ran.out.strip()
        digest = waiting(at, build)["digest"]
        assert ran.code == 7, ran.err
        assert f"mendwork approve {build} {digest[:12]}" in ran.err
        assert f"mendwork reject {build} {digest[:12]} --reason" in ran.err
        assert not landed(at, build)
        assert at.mendwork("abort", build).code == 0
        assert at.mendwork("watch", build).code == 3

    @of("by-command")
    def test_by_the_command_line_lands_it_and_a_later_answer_comes_too_late(
        self, at: Workshop, ask: dict[str, Any]
    ) -> None:
        build, digest = ask["build"], ask["digest"]
        assert not landed(at, build)
        assert at.mendwork("approve", build).code == 2  # without a terminal the digest has to be named
        assert at.mendwork("approve", build, "abc").code == 2
        other = answered(at, "approve", build, "0123456789")
        assert (other["code"], other["outcome"], other["reason"][:5]) == (3, "refused", "stale")
        assert answered(at, "approve", build, digest[:12], "--by", "ann")["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 0
        assert result(at, CONSENT, build)["note.py"] == "N = 1\n"
        late = at.mendwork("approve", build, digest)
        assert (late.code, "too late" in late.out) == (3, True)
        assert told(at, build, "ask.closed")[0]["by"] == "ann"

    @of("by-signal")
    def test_by_temporals_own_signal_command(self, at: Workshop, ask: dict[str, Any]) -> None:
        build = ask["build"]
        for words in ({"digest": "zz"}, ["no object"], {"digest": ask["digest"][:12].upper(), "by": "bob"}):
            sent = temporal(at, "workflow", "signal", "-w", build, "--name", "approve", "--input", json.dumps(words))
            assert sent.returncode == 0, sent.stderr
        assert at.mendwork("watch", build).code == 0
        assert told(at, build, "ask.closed")[0]["by"] == "bob"
        assert len(refusals(at, build)) == 2  # what is malformed is recorded and does no harm

    @of("by-update")
    def test_by_temporals_own_update_command_is_answered(self, at: Workshop, ask: dict[str, Any]) -> None:
        build = ask["build"]
        command = ["workflow", "update", "execute", "-w", build, "--name", "approve", "-o", "json", "--input"]
        malformed = temporal(at, *command, json.dumps({"digest": "short"}))
        assert malformed.returncode != 0
        assert "at least 8 hex digits" in malformed.stdout + malformed.stderr
        accepted = temporal(at, *command, json.dumps({"digest": ask["digest"], "by": "cy"}))
        assert accepted.returncode == 0, accepted.stderr
        assert json.loads(accepted.stdout)["result"]["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 0

    @of("rejected")
    def test_a_rejection_goes_back_into_planning_and_the_old_digest_is_stale(
        self, at: Workshop, ask: dict[str, Any]
    ) -> None:
        build, digest = ask["build"], ask["digest"]
        assert at.mendwork("reject", build, digest[:12]).code == 2  # it needs a reason
        assert answered(at, "reject", build, digest[:12], "--reason", "call it better")["outcome"] == "accepted"
        wait_for(lambda: len(told(at, build, "ask.opened")) == 2, seconds=90, why="the second approval")
        again = waiting(at, build)
        assert again["digest"] != digest
        stale = answered(at, "approve", build, digest)
        assert (stale["code"], stale["outcome"]) == (3, "refused")
        assert not landed(at, build)
        assert answered(at, "approve", build, again["digest"])["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 0
        assert result(at, CONSENT, build)["better.py"] == "N = 2\n"
        assert any(b"call it better" in content_of(path) for path in files_below(at.state / "blobs"))


def both(at: Workshop, *commands: list[str]) -> list[dict[str, Any]]:
    """The rulings of commands that run at the same time."""
    processes = [started(at, *command, "--json") for command in commands]
    return [json.loads(process.communicate(timeout=60)[0]) for process in processes]


@contextlib.contextmanager
def held_still(at: Workshop, worker: str) -> Iterator[None]:
    """A worker that does nothing meanwhile."""
    pid = at.pids()[worker]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def signalled_at_once(at: Workshop, build: str, *signals: tuple[str, dict[str, Any]]) -> None:
    """Signals with their words, while the saga's worker is held still: they come to it in one step."""
    with held_still(at, "saga"):
        for name, words in signals:
            sent = temporal(at, "workflow", "signal", "-w", build, "--name", name, "--input", json.dumps(words))
            assert sent.returncode == 0, sent.stderr


class TestTwoAtOnce:
    @of("twice")
    def test_an_approval_that_is_sent_twice_counts_once(self, at: Workshop, ask: dict[str, Any]) -> None:
        command = ["approve", ask["build"], ask["digest"]]
        rulings = both(at, command, command)
        assert sorted(ruling["outcome"] for ruling in rulings) == ["accepted", "refused"]
        assert at.mendwork("watch", ask["build"]).code == 0
        assert len(told(at, ask["build"], "ask.closed")) == 1

    @of("repeated")
    def test_an_approval_that_is_repeated_is_a_row_that_says_so(self, at: Workshop, ask: dict[str, Any]) -> None:
        """Both are in the history before the saga's worker goes on: the second is no later than the end."""
        build, words = ask["build"], {"digest": ask["digest"], "by": "ivy"}
        signalled_at_once(at, build, ("approve", words), ("approve", words))
        assert at.mendwork("watch", build).code == 0
        assert [data["by"] for data in told(at, build, "ask.closed")] == ["ivy"]
        (reason,) = refusals(at, build)
        assert reason == f"duplicate: {ask['id']} was answered approve by ivy already"

    @of("race")
    def test_of_an_approval_and_a_rejection_the_first_wins(self, at: Workshop, ask: dict[str, Any]) -> None:
        build, digest = ask["build"], ask["digest"]
        rulings = both(at, ["reject", build, digest, "--reason", "no"], ["approve", build, digest])
        assert sorted(ruling["outcome"] for ruling in rulings) == ["accepted", "refused"]
        lost = next(ruling for ruling in rulings if ruling["outcome"] == "refused")
        assert "decided" in lost["reason"] or "too late" in lost["reason"]
        approved = rulings[1]["outcome"] == "accepted"
        assert told(at, build, "ask.closed")[0]["choice"] == ("approve" if approved else "reject")
        if approved:
            assert at.mendwork("watch", build).code == 0
        else:
            assert answered(at, "abort", build)["outcome"] == "accepted"
            assert at.mendwork("watch", build).code == 3
        assert landed(at, build) == approved

    @of("abort")
    def test_an_abort_in_the_same_instant_wins(self, at: Workshop, ask: dict[str, Any]) -> None:
        """The saga's worker is held still, so that both come to it in one step."""
        build = ask["build"]
        signalled_at_once(at, build, ("approve", {"digest": ask["digest"]}), ("abort", {"by": "dot"}))
        assert at.mendwork("watch", build).code == 3
        assert at.status(build)["status"] == "aborted"
        assert not landed(at, build)
        assert (
            git(at.state / "mirrors" / f"{CONSENT.project}.git", "for-each-ref", f"refs/mendwork/builds/{build}") == ""
        )

    @of("overlap")
    def test_a_signal_and_an_update_overlap_and_the_worker_dies(self, at: Workshop, ask: dict[str, Any]) -> None:
        """Both are in the history before any worker has seen them; the next one gives each its ruling."""
        build, words = ask["build"], json.dumps({"digest": ask["digest"], "by": "eve"})
        os.kill(at.pids()["saga"], signal.SIGSTOP)
        sent = temporal(at, "workflow", "signal", "-w", build, "--name", "approve", "--input", words)
        update = started(at, "approve", build, ask["digest"], "--by", "flo", "--json")
        at.kill("saga")
        assert sent.returncode == 0, sent.stderr
        ruling = json.loads(update.communicate(timeout=60)[0])
        assert at.mendwork("watch", build).code == 0
        assert ruling["outcome"] in ("refused", "sent")  # told at once that it is a duplicate, or by a row later
        assert [data["by"] for data in told(at, build, "ask.closed")] == ["eve"]
        assert "NondeterminismError" not in "".join(log.read_text() for log in (at.state / "logs").glob("*.log"))


class TestSilence:
    def test_nothing_is_landed_and_nothing_of_the_repository_has_changed(self, at: Workshop) -> None:
        before = contents(repository(at, SILENT))
        ran = at.mendwork("build", "spec.md", "--project", SILENT.project)
        build = ran.out.strip()
        code = at.mendwork("watch", build).code if ran.code == 7 else ran.code
        assert code == 8, ran.err
        assert at.status(build)["status"] == "escalated"
        assert contents(repository(at, SILENT)) == before
        asked = told(at, build, "ask.opened")[0]["digest"]
        late = answered(at, "approve", build, asked)
        assert (late["code"], late["outcome"]) == (3, "refused")
        assert contents(repository(at, SILENT)) == before


class TestBeforeItIsAsked:
    def test_an_approval_is_kept_and_counts_for_that_digest_alone(self, at: Workshop) -> None:
        first = begun(at, EARLY)
        ask = waiting(at, first, "plan")
        digest = ask["digest"]
        with held_still(at, "model"):  # nothing can be asked before there is a plan
            second = begun(at, EARLY)
            kept = answered(at, "approve", second, digest, "--by", "gil")
            other = answered(at, "approve", second, "0123456789abcdef")
        assert (kept["outcome"], other["outcome"]) == ("early", "early")
        assert at.mendwork("watch", second).code == 0  # the same answer of the model is the same plan
        assert [(data["choice"], data["by"]) for data in told(at, second, "ask.closed")] == [("approve", "gil")]
        assert answered(at, "reject", first, digest, "--reason", "not this one")["outcome"] == "accepted"
        again = waiting(at, first, "plan", beyond=ask["id"])
        assert again["digest"] != digest
        assert answered(at, "abort", first)["outcome"] == "accepted"
