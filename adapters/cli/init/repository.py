"""What ``mendwork init`` looks at: the committed state of a branch, read by git; nothing of the repository runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInput, RepositoryRefused

_SECONDS = 60.0
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
MOST_READ = 400_000
"""Bytes of one file that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """``files`` maps every path of the branch's commit to its size in bytes (0 for links and submodules)."""

    folder: Path
    branch: str
    because: str
    files: Mapping[str, int]

    def text(self, path: str) -> bytes | None:
        """The content of a file of the branch; None where it is no file or too large to look at."""
        if not 0 < self.files.get(path, 0) <= MOST_READ:
            return None
        return _git(self.folder, "cat-file", "blob", f"refs/heads/{self.branch}:{path}")

    @property
    def exclude(self) -> Path:
        """The repository's own list of what is not its, which is never committed."""
        named = _text(self.folder, "rev-parse", "--git-path", "info/exclude")
        return self.folder / named


def open_repository(path: Path) -> Repository:
    """The repository that ``path`` is in. Raises InvalidInput, RepositoryRefused with what is to be done."""
    folder = _top(path)
    branch, because = _branch(folder)
    return Repository(folder=folder, branch=branch, because=because, files=_files(folder, branch))


def _top(path: Path) -> Path:
    if not path.is_dir():
        raise InvalidInput(f"{path} is no folder")
    bare = _ask(path, "rev-parse", "--is-bare-repository")
    if bare is None:
        why = _refusal(path)
        raise RepositoryRefused(why or f"{path} is in no git repository: make one with `git init`, and commit")
    if bare == "true":
        raise RepositoryRefused(f"{path} is a bare repository: run init in a clone of it, with files beside it")
    top = _ask(path, "rev-parse", "--show-toplevel")
    if not top:
        raise RepositoryRefused(f"{path} is inside a repository's own folder: run init beside its files")
    return Path(top)


def _branch(folder: Path) -> tuple[str, str]:
    """Where builds start from, and why: the remote's default branch, else what is checked out."""
    if _ask(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None and not _heads(folder):
        raise RepositoryRefused(f"{folder} has no commits yet: make the first one")
    default = (_ask(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD") or "").partition("/")[2]
    heads = _heads(folder)
    if default in heads:
        return default, "the default branch of its remote, origin"
    current = _ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or ""
    if current in heads:
        return current, "what is checked out"
    usual = next((name for name in ("main", "master") if name in heads), "")
    if usual or len(heads) == 1:
        return usual or heads[0], "HEAD is on no branch that has commits"
    raise RepositoryRefused(f"{folder} is on no branch that has commits, and has no main: check one out")


def _heads(folder: Path) -> list[str]:
    return (_ask(folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads") or "").split()


def _files(folder: Path, branch: str) -> dict[str, int]:
    listed = _git(folder, "ls-tree", "-r", "-z", "--long", f"refs/heads/{branch}")
    files = {}
    for entry in listed.split(b"\0"):
        facts, tab, path = entry.partition(b"\t")
        if tab:
            mode, _, _, size = facts.split()
            files[os.fsdecode(path)] = int(size) if mode.startswith(b"100") else 0
    if not files:
        raise RepositoryRefused(f"the branch {branch} of {folder} holds no files yet")
    return files


def _refusal(path: Path) -> str:
    """What git says when it refuses a repository that is there."""
    said = _call(path, "rev-parse", "--git-dir").stderr.decode(errors="replace")
    line = next((line for line in said.splitlines() if "dubious ownership" in line), "")
    return f"{line.removeprefix('fatal: ')}; git config --global --add safe.directory {path.resolve()}" if line else ""


def _ask(folder: Path, *arguments: str) -> str | None:
    done = _call(folder, *arguments)
    return None if done.returncode else done.stdout.decode(errors="surrogateescape").strip()


def _text(folder: Path, *arguments: str) -> str:
    return os.fsdecode(_git(folder, *arguments)).strip()


def _git(folder: Path, *arguments: str) -> bytes:
    done = _call(folder, *arguments)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RepositoryRefused(f"git cannot read {folder}: {said[-1] if said else done.returncode}")
    return done.stdout


def _call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    argv = ["git", *_QUIET, "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        raise RepositoryRefused("git is not installed: it reads the repository") from None
    except subprocess.TimeoutExpired:
        raise RepositoryRefused(f"git does not answer within {_SECONDS:g} s in {folder}") from None
