"""What the target needs of this machine, and the sentence for what is not there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LAUNCH = Path(__file__).parents[1] / "launch"
HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIRST_UID, UIDS = 61_184, 4_000
_PACKAGES = {"haproxy": "haproxy", "bwrap": "bubblewrap", "python3": "python3"}
_ALLOW = (
    "sysctl -e -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 "
    "kernel.apparmor_restrict_unprivileged_userns=0"
)


class Machine:
    """``path`` is where programs are looked up, ``supervisor`` the Python that has the package."""

    def __init__(self, *, path: str = HOST_PATH, supervisor: str = sys.executable) -> None:
        self._path = path
        self._python = supervisor
        self._bwrap: tuple[str, ...] = ()
        self._works = False

    @property
    def supervisord(self) -> list[str]:
        """Its command line, without options."""
        return [self._python, "-I", "-m", "supervisor.supervisord"]

    def program(self, name: str) -> str:
        """The full path of haproxy, bwrap or python3; "" when it is absent."""
        return shutil.which(name, path=self._path) or ""

    def bwrap(self) -> tuple[str, ...]:
        """Its program, with those flags that only some versions know."""
        if not self._bwrap:
            known = subprocess.run(
                [self.program("bwrap"), "--help"], capture_output=True, text=True, check=False, timeout=20
            ).stdout
            self._bwrap = (self.program("bwrap"), *(["--disable-userns"] if "--disable-userns" in known else []))
        return self._bwrap

    def missing(self) -> dict[str, str]:
        """Found out by trying, once; what works is not tried again."""
        if self._works:
            return {}
        lacking = {
            name: f"the local target needs {name}; install it: apt-get install -y {package}"
            for name, package in _PACKAGES.items()
            if not self.program(name)
        }
        if not self._has_supervisor():
            lacking["supervisord"] = "the local target needs supervisor; install it: uv sync --extra deploy"
        failure = "" if lacking else self._try_cell()
        if failure:
            lacking["isolation"] = f"a release cannot be isolated here ({failure}); allow it to: {_ALLOW}"
        self._works = not lacking
        return lacking

    def cell(self, *, uid: int) -> dict[str, Any]:
        """What a release's cell is built with. Sizes in bytes; ``processes`` is for all of the release together."""
        return {
            "uid": uid,
            "haproxy": self.program("haproxy"),
            "bwrap": self.bwrap(),
            "file_bytes": 1_000_000_000,
            "processes": 512,
        }

    def _has_supervisor(self) -> bool:
        if self._python == sys.executable:
            return importlib.util.find_spec("supervisor") is not None
        return os.access(self._python, os.X_OK)

    def _try_cell(self) -> str:
        """Why a command that does nothing cannot be run in a cell; "" when it can."""
        with tempfile.TemporaryDirectory(prefix="mendwork-trial-") as name:
            folder = Path(name)
            for inner in ("release", "scratch", "steps"):
                (folder / inner).mkdir()
            order = {**self.cell(uid=FIRST_UID + UIDS), "environment": {}}
            (folder / "order.json").write_text(json.dumps(order))
            (folder / "steps" / "trial.order").write_text(json.dumps({"argv": ["/bin/true"], "seconds": 10}))
            try:
                trial = subprocess.run(
                    [self.program("python3"), "-s", "-S", "-B", "-m", "launch", "step", str(folder), "trial"],
                    cwd=LAUNCH.parent,
                    env={"PATH": HOST_PATH},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=30,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
        said = trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"]
        return said[-1] if trial.returncode else ""


def user_for(root: Path, *, without: set[int]) -> int:
    """A user number for one unit: its own where we are root, ours elsewhere."""
    if os.geteuid() != 0:
        return os.geteuid()
    start = sum(os.fsencode(root)) * 31 % UIDS
    taken = without | _in_use()
    return next(uid for n in range(UIDS) if (uid := FIRST_UID + (start + n) % UIDS) not in taken)


def _in_use() -> set[int]:
    users = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            users.add(entry.stat().st_uid)
        except OSError:
            continue
    return users
