"""The demo, as ``make demo`` runs it at a terminal, with a shorter watch: it checks what it promises from outside, and
its exit code says so. With MENDWORK_SOAK=1 also as ``make demo YES=1`` runs it, without a terminal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.person import Person
from tests.e2e.workshop import CHECKOUT

PATIENCE = 400.0
"""Seconds: what the demo itself has for a build."""
PAGED = "more lines: Enter shows them, q stops -- "
ARGV = [sys.executable, str(CHECKOUT / "examples" / "demo.py"), "--keep", "--watch", "8"]
TOLD = (
    "kill -9",
    "RateLimited",
    "sent back (conflict",
    "sent back (finding",
    "were at work at the same time",
    "mendwork/build-notes-1",
    "production answers with release 2",
    "traffic goes back to release 2",
)

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """For a demo whose folder is gone afterwards."""
    before = set(CHECKOUT.glob(".mendwork-demo*"))
    named = {name: os.environ[name] for name in ("PATH", "MENDWORK_TEMPORAL__SERVER") if name in os.environ}
    yield {**named, "HOME": str(tmp_path), "TERM": "xterm"}
    for folder in set(CHECKOUT.glob(".mendwork-demo*")) - before:
        shutil.rmtree(folder)


def keeps_its_promises(printed: str) -> None:
    for part in TOLD:
        assert part in printed, printed
    assert "✗" not in printed
    for release, verdict in ((2, "pass"), (3, "fail")):
        drawn = printed[printed.index(f"── traffic goes to release {release} ──") :]
        windows = re.findall(r"^ +\d+  (\w[\w ]*?)  .*\d% \|", drawn, re.MULTILINE)
        assert verdict in windows[:20], f"windows of release {release}: {windows}"
    page = re.search(r"its report, with the figures drawn: (\S+)", printed)
    assert page is not None
    assert "<svg" in (CHECKOUT / page[1]).read_text()


def test_the_demo_keeps_its_promises_to_a_person_who_approves_at_the_terminal(environment: dict[str, str]) -> None:
    person = Person(ARGV, folder=CHECKOUT, environment=environment, all_of_it=True)
    try:
        for build, what in ((1, "change"), (1, "release"), (2, "change"), (2, "release")):
            person.sees(f"$ mendwork approve build-notes-{build}\n", seconds=PATIENCE)
            question = f"of build-notes-{build}? [y/N] "
            if person.sees(PAGED, question).endswith(PAGED):
                person.types("q")
                person.sees(question)
            assert f"approve the {what} " in person.shown.splitlines()[-1]
            person.types("y")
        person.sees("press Enter: everything is stopped.", seconds=PATIENCE)
        person.types("")
        code, _ = person.leaves()
    finally:
        person.process.terminate()
        person.process.wait(60)
    assert code == 0, person.shown
    assert "Nobody is asked here" not in person.shown
    keeps_its_promises(person.shown)


if os.environ.get("MENDWORK_SOAK") == "1":  # a minute of the suite more

    def test_the_demo_keeps_its_promises_without_a_terminal(environment: dict[str, str]) -> None:
        done = subprocess.run(
            [*ARGV, "--yes"], env=environment, capture_output=True, text=True, check=False, timeout=880
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, printed
        assert "Nobody is asked here: the demo answers" in printed
        assert "$ mendwork approve build-notes-1 " in printed
        keeps_its_promises(printed)
