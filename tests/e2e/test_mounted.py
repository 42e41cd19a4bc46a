"""Without bubblewrap: only when it is chosen, said in plain words, and for a repository that init has written down."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.workshop import ANSWERS, CHECKOUT, DEV, FILES, Workshop, git, make_repository, wait_for

REVIEW = {"role": "Review", "answer": {"summary": "nothing grave", "findings": []}}
MOUNT = '\n[sandbox]\nengine = "mount"\n'


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Everything up, in a mount; the project fresh is there by ``mendwork init`` alone."""
    at = Workshop(tmp_path_factory.mktemp("mounted") / "w", answers=[*ANSWERS, REVIEW])
    make_repository(at.root / "fresh", FILES)
    with at.provider() as base_url:
        at.configure(base_url=base_url, extra=MOUNT)
        begun = at.mendwork("init", "fresh", "--yes")
        assert begun.code == 0, begun.err
        with at.spawned(DEV, log="dev.log"):
            wait_for(at.is_ready, seconds=90, why="mendwork dev")
            with at.checked():
                yield at


def test_what_init_wrote_is_built_once_the_network_is_accepted(at: Workshop) -> None:
    said = (at.root / "dev.log").read_text()
    for word in ("keys and other projects too", "can reach every service", "number of a run's processes"):
        assert word in said

    refused = at.mendwork("build", "spec.md", "--project", "fresh")
    assert refused.code == 3, refused.err
    assert "--allow-missing network" in refused.err

    options = ("--project", "fresh", "--yes", "--allow-missing", "network")
    built = at.mendwork("build", "spec.md", *options, seconds=180)
    assert built.code == 0, built.err
    assert "mul #1: red" in built.err
    branch = f"mendwork/{built.out.strip()}"
    assert "def square" in git(at.root / "fresh", "show", f"{branch}:calc.py")
    assert not list((at.state / "work").glob("**/mendwork-mount-*"))


def test_the_demo_names_its_flag_where_there_is_no_bubblewrap(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    argv = [sys.executable, str(CHECKOUT / "examples" / "demo.py"), "--yes", "--keep"]
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "--sandbox mount (make demo MOUNT=1)" in done.stdout + done.stderr


if os.environ.get("MENDWORK_SOAK") == "1":  # a minute of the suite, for a way that few go

    @pytest.mark.timeout(300)
    def test_the_demo_lands_its_feature_in_a_mount_when_asked_to(tmp_path: Path) -> None:
        before = set(CHECKOUT.glob(".mendwork-demo*"))
        argv = [sys.executable, str(CHECKOUT / "examples" / "demo.py"), "--yes", "--keep", "--sandbox", "mount"]
        environment = {name: os.environ[name] for name in ("PATH", "MENDWORK_TEMPORAL__SERVER") if name in os.environ}
        environment["HOME"] = str(tmp_path)
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=280)
        for folder in set(CHECKOUT.glob(".mendwork-demo*")) - before:
            shutil.rmtree(folder)
        printed = done.stdout + done.stderr
        assert done.returncode == 0, printed
        assert "Nothing isolates here" in printed
        assert "sent back (conflict" in printed
        assert "✗" not in printed
