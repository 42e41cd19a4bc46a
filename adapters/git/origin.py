"""The user's repository: found, judged, and reached as its owner."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import plain, refusal
from adapters.git.run import Git, Owner, with_settings
from domain.build.names import result_branch
from domain.build.project import Project
from domain.errors import BranchTaken, RepositoryRefused

_NAMED = 6
_UNFINISHED = ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name", "BISECT_START")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """``git`` runs in the folder that holds the objects and refs, for a linked worktree that of its main one."""

    project: Project
    git: Git
    object_format: str

    async def refs(self, *patterns: str) -> dict[str, str]:
        """Full ref names and what they point at."""
        listed = await self.git.run("for-each-ref", "--format=%(objectname) %(refname)", *patterns,
                                    doing=f"read the branches of {self.project.repository}")  # fmt: skip
        pairs = (line.split(" ", 1) for line in listed.decode("utf-8", "surrogateescape").splitlines())
        return {name: commit for commit, name in pairs}

    async def require_branch(self) -> str:
        """The full name of the project's branch. Raises RepositoryRefused with the branches that there are."""
        wanted = f"refs/heads/{self.project.branch}"
        if wanted in await self.refs("refs/heads"):
            return wanted
        known = await self.known_branches()
        if not known:
            raise RepositoryRefused(f"{self.project.repository} has no commit on any branch yet")
        raise RepositoryRefused(f"{self.project.repository} has no branch {self.project.branch!r}; it has {known}")

    async def known_branches(self) -> str:
        """The latest few branches, as words of a sentence; "" when there is none."""
        recent = await self.git.run("for-each-ref", "--sort=-committerdate", "--format=%(refname:lstrip=2)",
                                    "refs/heads", doing=f"read the branches of {self.project.repository}")  # fmt: skip
        names = recent.decode("utf-8", "replace").splitlines()
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{', '.join(names[:_NAMED])}{more}"

    async def result(self, build: str) -> str | None:
        """What the build's branch points at, None when it can be created. Raises RepositoryRefused when it cannot."""
        branch = f"refs/heads/{result_branch(build)}"
        taken = await self.refs("refs/heads/mendwork")
        if "refs/heads/mendwork" in taken:
            raise RepositoryRefused(
                f"{self.project.repository} has a branch named 'mendwork', so that git cannot create "
                f"{result_branch(build)!r} beside it: rename that branch"
            )
        below = next((name for name in taken if name.startswith(f"{branch}/")), None)
        if below:
            raise RepositoryRefused(
                f"{self.project.repository} has a branch {below.removeprefix('refs/heads/')!r}, so that git cannot "
                f"create {result_branch(build)!r}: rename that branch"
            )
        return taken.get(branch)

    async def in_use(self, branch: str) -> str:
        """Where a working tree stands on ``branch`` (its full name), as words of a sentence; "" when none does."""
        listed = await self.git.run("worktree", "list", "--porcelain", "-z",
                                    doing=f"read the working trees of {self.project.repository}")  # fmt: skip
        for tree in listed.decode("utf-8", "surrogateescape").split("\0\0"):
            lines = tree.split("\0")
            if f"branch {branch}" in lines:
                return f"checked out in {plain(lines[0].removeprefix('worktree '))}"
            if "bare" in lines and (self.git.directory / "index").exists() and await self._head() == branch:
                return f"checked out in a working tree of {self.git.directory}, which is bare and has an index"
        return self._unfinished(branch)

    async def _head(self) -> str:
        answer = await self.git.outcome("symbolic-ref", "--quiet", "HEAD")
        return answer.stdout.decode("utf-8", "surrogateescape").strip()

    def _unfinished(self, branch: str) -> str:
        """The same for a rebase or a bisection, which come back to the branch while their HEAD is detached."""
        lines = {os.fsencode(branch), os.fsencode(branch.removeprefix("refs/heads/"))}
        for folder in (self.git.directory, *(self.git.directory / "worktrees").glob("*")):
            for name in _UNFINISHED:
                file = folder / name
                if file.is_file() and lines & set(file.read_bytes().splitlines()):
                    return f"waiting for the end of a {'bisection' if 'BISECT' in name else 'rebase'} in {folder}"
        return ""

    def require_writable(self) -> None:
        """Raise RepositoryRefused when a result could never land here."""
        for folder in (self.git.directory / "objects", self.git.directory / "refs"):
            state, owner = folder.stat(), self.git.owner
            closed = owner and state.st_uid == owner.uid and not state.st_mode & stat.S_IWUSR
            if closed or not os.access(folder, os.W_OK):
                raise RepositoryRefused(f"{folder} may not be written to, so no result could be put on a branch")

    def taken(self, build: str, commit: str) -> BranchTaken:
        """The error for a result branch that somebody else holds at ``commit``."""
        return BranchTaken(f"{self.project.repository} already has a branch {result_branch(build)!r}, at {commit[:12]}")

    def upload_pack(self) -> str:
        """The command that ``git fetch`` starts in the user's repository, for its shell."""
        words = ["git", *with_settings("upload-pack")]
        if self.git.owner:
            to = (f"--reuid={self.git.owner.uid}", f"--regid={self.git.owner.gid}", "--clear-groups")
            words = ["setpriv", *to, "--", *words]
        return shlex.join(words)


def short(ref: str) -> str:
    """A branch's name for people."""
    return plain(ref.removeprefix("refs/heads/"))


async def open_origin(project: Project, home: Path) -> Origin:
    """Find the project's repository. Raises RepositoryRefused with what is wrong with it."""
    path = Path(project.repository)
    if not path.is_absolute() or "\0" in project.repository:
        raise RepositoryRefused(f"repository {project.repository!r} of project {project.name} is not an absolute path")
    try:
        directory = _common_folder(path)
        owner = _other_owner(path, directory)
    except FileNotFoundError as error:
        raise RepositoryRefused(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RepositoryRefused(f"{path} cannot be read as a git repository") from error
    git = Git(directory=directory, home=home, owner=owner)
    answer = await git.outcome("rev-parse", "--show-object-format")
    if answer.code:
        whose = f", which is used as its owner, user {owner.uid}, who must be able to reach it" if owner else ""
        raise refusal(answer.stderr, doing=f"use the repository {path}{whose}")
    return Origin(project=project, git=git, object_format=answer.stdout.decode().strip())


def _common_folder(path: Path) -> Path:
    """Where the objects and refs are; found without git, which can only be run once their owner is known."""
    path.stat()
    inner, folder = path / ".git", path
    if inner.is_dir():
        folder = inner
    elif inner.is_file():
        folder = path / inner.read_text("utf-8").removeprefix("gitdir:").strip()
    shared = folder / "commondir"
    if shared.is_file():
        folder = folder / shared.read_text("utf-8").strip()
    if not all((folder / name).exists() for name in ("HEAD", "objects", "refs")):
        raise RepositoryRefused(f"{path} is not a git repository")
    return folder.resolve()


def _other_owner(path: Path, directory: Path) -> Owner | None:
    """Whom to run as: root would leave objects that their owner cannot remove, and obey what that owner configured."""
    others = [state for state in (path.stat(), directory.stat()) if state.st_uid != 0]
    if os.geteuid() != 0 or not others:
        return None
    return Owner(uid=others[0].st_uid, gid=others[0].st_gid)
