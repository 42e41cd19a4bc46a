"""A PostgreSQL cluster of the suite's own: in a temporary folder, reachable by its socket only, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

MISSING = "PostgreSQL's initdb and pg_ctl are not found; the store's tests need them: apt-get install postgresql"
TEMPLATE = "mendwork_template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``folder`` holds data, log and socket and belongs to ``user``, who is never root."""

    binaries: Path
    folder: Path
    user: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def url(self, database: str) -> str:
        """As ``mendwork.toml`` would name it."""
        return f"postgresql://{self.user}@/{database}?host={self.folder}"

    def create(self, *, template: str = "template1", name: str = "") -> str:
        """A new database; returns its URL."""
        name = name or f"test_{next(self.numbers)}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        with psycopg.connect(host=str(self.folder), user=self.user, dbname=database, autocommit=True) as connection:
            connection.execute(statement.encode())

    def control(self, *arguments: str) -> None:
        """``pg_ctl``, waiting until it is done."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "60", *arguments)

    def start(self) -> None:
        """No listener but the socket; nothing is synced, because the cluster does not outlive the suite."""
        options = f"-c listen_addresses='' -k {self.folder} -c fsync=off -c full_page_writes=off -c max_connections=100"
        self.control("-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, *, mode: str = "fast") -> None:
        self.control("-m", mode, "stop")

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.binaries / program, *arguments],
            **self.account(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server would keep a pipe open
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        log = self.folder / "log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
        assert done.returncode == 0, f"{program} {' '.join(arguments)} exited with {done.returncode}: {said}"

    def account(self) -> dict[str, Any]:
        """How a process of the cluster runs: as its user where that has to be another one, with nothing of ours."""
        plain: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self.folder)}}
        if os.geteuid() != 0:
            return plain
        return plain | {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever becomes of this process, also by SIGKILL: its end of a pipe closes, and the cluster goes away."""
        script = 'read -r _; "$0" -D "$1/data" -m immediate stop; rm -rf "$1"'
        guard = subprocess.Popen(
            ["/bin/sh", "-c", script, self.binaries / "pg_ctl", self.folder],
            **self.account(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            guard.communicate(timeout=180)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A started cluster; fails with a sentence where PostgreSQL is not installed."""
    binaries = find_binaries()
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="mwpg-", dir=_reachable()))
    if os.geteuid() == 0:
        shutil.chown(folder, user)
    cluster = Cluster(binaries=binaries, folder=folder, user=user)
    with cluster.guarded():
        cluster.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", user, "-E", "UTF8", "--no-sync")
        cluster.start()
        yield cluster


def find_binaries() -> Path:
    """The folder that has both initdb and pg_ctl: on PATH, where pg_config says, or where Debian puts it."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    if shutil.which("pg_config"):
        said = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(said.stdout.strip()))
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return first_with_programs(folders)


def first_with_programs(folders: Iterable[Path]) -> Path:
    """Fails with the sentence that names the package."""
    for folder in folders:
        if all(os.access(folder / program, os.X_OK) for program in ("initdb", "pg_ctl")):
            return folder
    raise AssertionError(MISSING)


def _user() -> str:
    """PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    names = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _reachable() -> str:
    """A folder for temporary files that another user can enter, short enough for a socket's name."""
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(folder).resolve()
        if len(str(path)) < 60 and all(part.stat().st_mode & 0o001 for part in (path, *path.parents)):
            return str(path)
    raise AssertionError("no folder for temporary files is open to other users: PostgreSQL's user cannot enter it")
