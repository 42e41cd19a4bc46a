"""What docs/temporal.md tells a person to type, typed as it stands: a build with nothing but Temporal's own command."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.human.attributes import ATTRIBUTES
from tests.e2e.projects import told, waiting
from tests.e2e.test_readme import Typed, commands
from tests.e2e.test_temporal_cli import history, temporal
from tests.e2e.workshop import CHECKOUT, Workshop, git, wait_for

DOCUMENT = CHECKOUT / "docs" / "temporal.md"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Workshop]:
    at = Workshop(tmp_path / "w")
    shop = '\n[projects.shop]\nrepository = "repository"\ntest = "python3 -m unittest"\nreview = false\n'
    with at.running(extra=shop):
        yield at


def run(at: Workshop, typed: Typed) -> subprocess.CompletedProcess[str]:
    """One command; DIGEST is that of what its build asks, EVENT the one before its approval."""
    words = list(typed.argv[1:])
    if any("DIGEST" in word for word in words):
        digest = waiting(at, build_of(words))["digest"]
        words = [word.replace("DIGEST", digest[:12]) for word in words]
    if "EVENT" in words:
        waiting(at, build_of(words))
        words[words.index("EVENT")] = phase_event(at, build_of(words), "approve")
    if "terminate" in words:
        waiting(at, build_of(words))  # before its first event nothing knows of it, and nothing has to be undone
    return temporal(at, *words)


def listed(at: Workshop, typed: Typed) -> None:
    """Lists follow a moment later."""
    wait_for(lambda: "shop-1" in temporal(at, *typed.argv[1:]).stdout, why=" ".join(typed.argv))


def build_of(words: list[str]) -> str:
    return words[words.index("--workflow-id") + 1]


def phase_event(at: Workshop, build: str, phase: str) -> str:
    """The completed workflow task that told the phase, as the document says where it is found."""
    for event in history(at, build):
        upsert = event.get("upsertWorkflowSearchAttributesEventAttributes", {})
        value = upsert.get("searchAttributes", {}).get("indexedFields", {}).get("BuildPhase")
        if value and json.loads(base64.b64decode(value["data"])) == phase:
            return str(upsert["workflowTaskCompletedEventId"])
    raise AssertionError(f"{build} never told the phase {phase}")


def test_the_table_of_search_attributes_is_the_products() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (\w+) \|", DOCUMENT.read_text(), re.MULTILINE)
    found = {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}
    assert found == dict(ATTRIBUTES)


def test_the_commands_that_the_readme_shows_are_those_that_are_typed_here() -> None:
    typed = {line.removeprefix("$ ") for line in DOCUMENT.read_text().splitlines() if line.startswith("$ ")}
    shown = [line for line in (CHECKOUT / "README.md").read_text().splitlines() if line.startswith("temporal ")]
    assert len(shown) == 9
    assert [line for line in shown if line not in typed] == []


@pytest.mark.timeout(300)
def test_the_commands_of_the_document_do_what_it_says(at: Workshop) -> None:
    typed = commands(DOCUMENT.read_text())
    assert len(typed) > 18
    said = {}
    for each in typed:
        if each.argv[2] == "list":
            waiting(at, "shop-1")
            listed(at, each)
        ran = run(at, each)
        assert ran.returncode == 0, (each.argv, ran.stdout, ran.stderr)
        said[" ".join(each.argv[1:])] = ran.stdout
    lists = [out for line, out in said.items() if line.startswith("workflow list")]
    assert len(lists) == 3
    assert all("shop-1" in out for out in lists)
    results = {name: at.status(name)["status"] for name in ("shop-1", "shop-2", "shop-5")}
    assert results == dict.fromkeys(results, "succeeded")
    assert at.status("shop-3")["status"] == "aborted"
    wait_for(lambda: at.status("shop-4")["status"] == "aborted", seconds=60, why="the sweeper")
    assert git(at.state / "mirrors" / "shop.git", "for-each-ref", "refs/mendwork/builds/shop-4") == ""
    branches = git(at.repository, "branch", "--format=%(refname:short)").split()
    assert {"mendwork/shop-1", "mendwork/shop-2", "mendwork/shop-5"} <= set(branches)
    assert "mendwork/shop-3" not in branches
    asked = [line["key"] for line in at.billed() if line["key"].startswith("shop-5")]
    assert len(asked) == len(set(asked)) == 4, "no model was asked again"
    assert told(at, "shop-5", "build.ended")
