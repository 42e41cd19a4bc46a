"""A user's repository for the workspace tests, and the changes that are asked of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from domain.build.change import Change, Edit, FileOperation
from domain.build.project import Project
from domain.ports.workspace import CommitRequest

_USER = {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"} | {
    f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", "U"), ("EMAIL", "u@h"))
}


class UserRepository:
    """A user's repository, worked on as a user does: by git itself."""

    def __init__(self, path: Path, *options: str, commit: bool = True) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *options)
        if commit:
            self.commit({"app.py": b"one\ntwo\nthree\n", "lib/tool.py": b"tool\n", "README": b"read me\n"})

    def git(self, *arguments: str) -> str:
        """Run git in the repository; return what it printed."""
        command = ("git", "-c", "safe.directory=*", "-c", "core.fsync=none", *arguments)
        environment = {"PATH": os.environ["PATH"], **_USER}
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(self, files: Mapping[str, bytes]) -> str:
        """Write and commit ``files``; whatever else is in the working tree is committed too."""
        for name, content in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=work")
        return self.git("rev-parse", "HEAD")

    def refs(self) -> dict[str, str]:
        """Every ref and what it points at."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def project(self, *, branch: str = "main") -> Project:
        """The project that this repository is configured as."""
        return Project(name="shop", repository=str(self.path), branch=branch, test=("true",))


def operation(
    action: Literal["create", "replace", "edit", "delete"], path: str, content: str = "", *edits: tuple[str, str]
) -> FileOperation:
    """One file of a change; ``edits`` are pairs of search and replace."""
    pairs = tuple(Edit(search=search, replace=replace) for search, replace in edits)
    return FileOperation(action=action, path=path, content=content, edits=pairs)


def request(base: str, *operations: FileOperation, build: str = "b1", file_bytes: int = 1000) -> CommitRequest:
    """A request with small limits: five files."""
    change = Change(summary="work", operations=operations)
    return CommitRequest(project="shop", build=build, base=base, change=change, message="Add it\n\nTask: t1",
                         at=1_700_000_000, file_bytes=file_bytes, files=5)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder``, links by their target."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(os.readlink(path))
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
