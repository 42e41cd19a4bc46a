"""The suite's own PostgreSQL: never skipped, never left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.postgres import first_with_programs

HOLDER = """
import time
from tests.postgres import running_cluster
with running_cluster() as cluster:
    print(cluster.folder, flush=True)
    time.sleep(600)
"""


def runs(pid: int) -> bool:
    """A zombie has no command line left."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_without_postgresql_the_tests_fail_with_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="apt-get install postgresql"):
        first_with_programs([tmp_path, tmp_path / "none"])


def test_a_killed_suite_leaves_no_cluster() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder, holder.stdout:
        folder = Path(holder.stdout.readline().strip())
        server = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        holder.kill()
    deadline = time.monotonic() + 60
    while folder.exists() or runs(server):
        assert time.monotonic() < deadline, f"{folder} or its server {server} is still there"
        time.sleep(0.05)
