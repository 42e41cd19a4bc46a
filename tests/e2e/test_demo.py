"""The demo, as ``make demo YES=1`` runs it, with a shorter watch: it checks what it promises from outside, and its exit
code says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.workshop import CHECKOUT


@pytest.mark.timeout(600)
def test_the_demo_keeps_its_promises_without_a_terminal(tmp_path: Path) -> None:
    before = set(CHECKOUT.glob(".mendwork-demo*"))
    environment = {name: os.environ[name] for name in ("PATH", "MENDWORK_TEMPORAL__SERVER") if name in os.environ}
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "examples" / "demo.py"), "--yes", "--keep", "--watch", "8"],
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    for folder in set(CHECKOUT.glob(".mendwork-demo*")) - before:
        shutil.rmtree(folder)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    for part in (
        "kill -9",
        "RateLimited",
        "sent back (conflict",
        "sent back (finding",
        "Nobody is asked here: the demo answers",
        "$ mendwork approve build-notes-1 ",
        "were at work at the same time",
        "mendwork/build-notes-1",
        "production answers with release 2",
        "traffic goes back to release 2",
        "its report, with the figures drawn: ",
    ):
        assert part in printed, printed
    assert "✗" not in printed
