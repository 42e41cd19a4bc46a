"""Builds started and looked at with Temporal's own command line alone; what reaches a history is small and clean."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.temporal.finding import find_server
from tests.e2e.workshop import ANSWERS, CALC, CHECKOUT, DEV, FILES, SPEC, TESTS, Workshop, git
from tests.trees import files_below

LIMIT = 256 * 1024


def temporal(at: Workshop, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The Temporal CLI against the server that runs for ``at``."""
    address = json.loads((at.state / "dev.json").read_text())["address"]
    named = os.environ.get("MENDWORK_TEMPORAL__SERVER")
    program = find_server(explicit=Path(named) if named else None, environment=os.environ)
    return subprocess.run(
        [str(program), "--address", address, *arguments],
        env=at.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def history(at: Workshop, workflow: str) -> list[dict[str, Any]]:
    """Every event of one workflow, as the server exports it."""
    shown = temporal(at, "workflow", "show", "--workflow-id", workflow, "--output", "json")
    assert shown.returncode == 0, shown.stderr
    events: list[dict[str, Any]] = json.loads(shown.stdout)["events"]
    return events


def started(at: Workshop, name: str, request: Any) -> subprocess.CompletedProcess[str]:
    """``temporal workflow execute`` with the request from a file, as a user types it."""
    file = at.root / "request.json"
    file.write_text(json.dumps(request))
    command = ["workflow", "execute", "--type", "BuildSaga", "-t", "mendwork", "--workflow-id", name]
    return temporal(at, *command, "--input-file", str(file))


def test_a_build_started_with_temporals_own_command_ends_on_its_branch(shop: Workshop) -> None:
    done = started(shop, "by-hand-1", {"spec": SPEC, "project": "calc"})
    assert "COMPLETED" in done.stdout, done.stdout + done.stderr
    assert git(shop.repository, "log", "--format=%s", "-1", "mendwork/by-hand-1").strip() == "Add square"
    assert shop.status("by-hand-1")["status"] == "succeeded"


@pytest.mark.parametrize(
    ("name", "request_", "kind"),
    [
        ("by-hand-2", {"spec": ""}, "InvalidInput"),
        ("by-hand-3", ["a list"], "InvalidInput"),
        ("by-hand-4", {"spec": "x", "projekt": "calc"}, "InvalidInput"),
        ("by-hand-5", {"spec": "x", "project": "nope"}, "UnknownName"),
        ("by-hand-6", {"spec": "x"}, "InvalidInput"),  # several projects, none named
        ("a..b", {"spec": "x", "project": "calc"}, "InvalidName"),
        ("x.lock", {"spec": "x", "project": "calc"}, "InvalidName"),
        ("white space", {"spec": "x", "project": "calc"}, "InvalidName"),
    ],
)
def test_a_mistyped_start_fails_at_once_with_its_kind(shop: Workshop, name: str, request_: Any, kind: str) -> None:
    done = started(shop, name, request_)
    assert "FAILED" in done.stdout, done.stdout + done.stderr
    last = history(shop, name)[-1]["workflowExecutionFailedEventAttributes"]["failure"]
    assert last["applicationFailureInfo"]["type"] == kind
    assert len(last["message"]) < 300
    assert str(CHECKOUT) not in json.dumps(history(shop, name))  # no trace tells where the engine lies
    assert not (shop.state / "mirrors" / "calc.git" / "refs" / "mendwork" / "builds" / name).exists()


def test_a_cancelled_build_undoes_what_it_did(shop: Workshop) -> None:
    name = shop.mendwork("build", "spec.md", "--project", "calc", "--detach").out.strip()
    before = git(shop.repository, "for-each-ref")
    temporal(shop, "workflow", "cancel", "--workflow-id", name)
    watched = shop.mendwork("watch", name)
    assert (watched.code, shop.status(name)["status"]) == (3, "aborted")
    assert git(shop.repository, "for-each-ref") == before
    assert git(shop.state / "mirrors" / "calc.git", "for-each-ref", f"refs/mendwork/builds/{name}") == ""


def content_of(path: Path) -> bytes:
    """The content of a file that may go away meanwhile, as a database's journal does; of a huge one, the beginning."""
    try:
        with path.open("rb") as file:
            return file.read(50_000_000)
    except (FileNotFoundError, ProcessLookupError):  # the latter is what /proc says between opening and reading
        return b""


def test_the_key_is_nowhere_but_in_the_model_workers_environment(shop: Workshop) -> None:
    name = shop.mendwork("build", "spec.md", "--project", "calc").out.strip()
    canary = shop.environment["SCRIPTED_API_KEY"].encode()
    shown = [json.dumps(history(shop, workflow)) for workflow in (name, f"{name}-task-mul")]
    assert not [text for text in shown if canary.decode() in text]
    assert not [path for path in files_below(shop.state) if canary in content_of(path)]
    holders = {worker for worker, pid in shop.pids().items() if canary in Path(f"/proc/{pid}/environ").read_bytes()}
    assert holders == {"model"}
    assert not [pid for pid in shop.pids().values() if canary in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workshop, str]]:
    """A file of 5 MB, a test log of 10 MB, a prompt of 300,000 tokens and more."""
    loud = TESTS.replace(
        "        self.assertEqual(add(1, 2), 3)", "        print('x' * 10_000_000)\n" + " " * 8 + "add(1, 2)"
    )
    files = {
        **FILES,
        "test_calc.py": loud,
        "data.txt": "0123456789abcde\n" * 330_000,
        "calc.py": "# pad\n" * 210_000 + CALC,
    }
    at = Workshop(tmp_path_factory.mktemp("heavy") / "w", answers=ANSWERS, files=files)
    limits = "\n[projects.calc.limits]\nfile_bytes = 6_000_000\nprompt_bytes = 6_000_000\ncontext_tokens = 800_000\n"
    with at.running(dev=DEV, extra=limits):
        ran = at.mendwork("build", "spec.md")
        assert ran.code == 0, ran.err
        yield at, ran.out.strip()


class TestAHeavyBuild:
    def test_keeps_every_payload_below_a_quarter_of_a_megabyte(self, heavy: tuple[Workshop, str]) -> None:
        at, name = heavy
        for workflow in (name, f"{name}-task-mul", f"{name}-task-square"):
            assert max(len(json.dumps(event)) for event in history(at, workflow)) < LIMIT

    def test_sends_the_whole_context_to_the_model(self, heavy: tuple[Workshop, str]) -> None:
        at, name = heavy
        change = next(line for line in at.billed() if line["key"] == f"{name}-task-mul/change/1/1")
        assert change["input_tokens"] >= 300_000

    def test_keeps_the_whole_log_for_a_person_and_little_for_the_model(self, heavy: tuple[Workshop, str]) -> None:
        at, name = heavy
        log = at.mendwork("show", name, "--task", "mul", "--attempt", "1", "--log").out
        assert len(log) > 10_000_000
        attempt = json.loads(at.mendwork("show", name, "--task", "mul", "--attempt", "1", "--json").out)
        report = at.state / "blobs" / attempt["report"][:2] / attempt["report"][2:]
        assert 0 < report.stat().st_size <= 12_000
        assert "AssertionError: 5 != 6" in report.read_text()
