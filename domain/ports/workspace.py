"""Git, as the saga needs it: private mirrors, fresh checkouts, commits by compare-and-set, one landing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from domain.build.change import Change
from domain.build.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """One tracked file; ``kind`` is "file", "executable", "symlink" or "submodule"; ``size`` in bytes.

    ``oid`` is the name that git has for its content, "" where nobody asked git.
    """

    path: str
    size: int
    kind: str
    oid: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """``base`` is the parent, ``at`` the author and committer time, seconds since 1970: same request, same SHA."""

    project: str
    build: str
    base: str
    change: Change
    message: str
    at: int
    file_bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A commit that waits for its gates. ``written`` maps each written path to the SHA-256 of its content as bytes
    in a checkout; a deleted path maps to the empty string."""

    commit: str
    written: Mapping[str, str]


class Mirrors(Protocol):
    """The private bare repository per project, and the refs of its builds.

    Every method may be repeated after a crash and then finds what it did before.
    """

    async def fetch_base(self, project: Project, *, build: str) -> str:
        """Fetch the project's branch and pin it for ``build``; return its commit.

        A build that is already pinned keeps its base, whatever the branch says now. Also refuses what would only fail
        at the end: ``mendwork/<build>`` that exists, a branch named ``mendwork``.

        Raises RepositoryRefused, BranchTaken.
        """
        ...

    async def head(self, project: str, *, build: str) -> str:
        """The commit that the build's next task starts from. Raises RepositoryRefused when it has none."""
        ...

    async def advance(self, project: str, *, build: str, old: str, new: str) -> None:
        """Move the build's head from ``old`` to ``new``; already at ``new`` is success. Raises Overtaken otherwise."""
        ...

    async def forget(self, project: str, *, build: str) -> None:
        """Remove every ref of the build from the mirror. Nothing there is success."""
        ...


class SnapshotPins(Protocol):
    """What keeps the commits of snapshots, whatever becomes of the builds that they are of: neither ``Mirrors.forget``
    nor git's own collection takes them. Every method may be repeated."""

    async def pin_snapshot(self, project: str, *, build: str, number: int, commits: Sequence[str]) -> None:
        """Keep ``commits`` for the build's snapshot ``number``, below ``refs/mendwork/snapshots/<build>/<number>``.
        What it holds already stays: a build that was reset may take the same number again.

        Raises RepositoryRefused when the mirror lacks one of them; none is pinned then.
        """
        ...

    async def snapshots(self, project: str) -> Sequence[tuple[str, int]]:
        """Build and number of each that is pinned, in that order; none where there is no mirror."""
        ...

    async def unpin(self, project: str, *, build: str, number: int) -> None:
        """Remove the pins of one snapshot. Nothing there is success. Raises Overtaken."""
        ...

    async def restore(self, project: Project, *, build: str, base: str, head: str) -> None:
        """Make commits of a snapshot the base and the head of ``build``, which has none yet, as if it had fetched them.

        A repeat finds them, and leaves a head that has moved on where it is. Refuses what ``Mirrors.fetch_base`` would
        refuse of a result that could not land. Raises RepositoryRefused, BranchTaken.
        """
        ...


class Sources(Protocol):
    """Reading commits of a mirror, without a checkout."""

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        """Every tracked file, sorted by path."""
        ...

    async def read(self, project: str, commit: str, path: str) -> bytes:
        """A file's content, or a symlink's target. Raises InvalidInput when the commit has no such file."""
        ...

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        """The contents of regular files by path, in one go; ``files`` have their object ids. One that is over 64 MB, or
        that the mirror does not have, is left out."""
        ...

    async def diff(self, project: str, old: str, new: str) -> str:
        """A unified diff as git prints it, with undecodable bytes replaced."""
        ...

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        """Whether ``ancestor`` is ``commit`` or in its history; what the mirror does not have is not."""
        ...


class Workspaces(Protocol):
    """Fresh folders with a commit's files, and commits made from changes."""

    def checkout(self, project: str, commit: str, *, label: str) -> AbstractAsyncContextManager[Path]:
        """A new folder under our own root that holds the commit's files and no ``.git``; removed on exit.

        ``label`` names whose it is (saga, step, attempt), so that leftovers of a killed worker can be found and
        removed: a folder of the same label is removed first.
        """
        ...

    async def commit(self, request: CommitRequest) -> Candidate:
        """Apply the change to ``base`` and commit it, pinned in the mirror; the build's head does not move.

        Raises InvalidChange with a reason for the model: path outside the repository, inside ``.git``, through a
        symlink, too large, too many, search text not found once, create of what exists, edit or delete of what does
        not, nothing changed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RebaseRequest:
    """Write the commits from ``base`` (not included) to ``head`` again on top of ``onto``."""

    project: str
    build: str
    onto: str
    base: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """``commit`` is the new head, "" when there are ``conflicts`` (paths); ``report`` shows them, both sides marked, in
    text that a model and a person can read (at most 20,000 characters). ``touched`` are the paths that differ between
    ``onto`` and ``commit``."""

    commit: str
    conflicts: tuple[str, ...]
    report: str
    touched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A commit of the user's repository, now in the mirror; ``base`` is where it left the build's history."""

    commit: str
    base: str


class Merges(Protocol):
    """Bringing commits together in the mirror, without a working tree. Every method may be repeated: same input, same
    commit."""

    async def rebase(self, request: RebaseRequest) -> Rebased:
        """Three-way, commit by commit; author, message and time stay. ``onto`` = ``base`` gives ``head`` itself. The
        new commits are pinned for the build; its head does not move. Conflicts are a result, not an error.

        Commits whose content is there already are left out; with nothing left the result is ``onto``. A range that
        holds a merge, whose resolutions must not be lost, becomes one commit. Raises InvalidInput when ``head`` does
        not descend from ``base``, RepositoryRefused for commits that the mirror lacks.
        """
        ...

    async def take(self, project: Project, *, build: str, onto: str, name: str) -> Taken:
        """Fetch a person's commit by branch name or (abbreviated, at least 7 digits) SHA from the user's repository and
        pin it; nothing else is fetched. What a branch names may be another commit the next time.

        Raises InvalidInput, with branches that there are, when there is none, it is not unique or shares no history
        with ``onto``; RepositoryRefused.
        """
        ...

    async def target(self, project: Project, *, build: str) -> str:
        """Fetch the project's branch as it is now, pin and return its commit. Raises RepositoryRefused."""
        ...


class Landing(Protocol):
    """The only writes to the user's repository: one new branch and its removal; the target branch, forwards."""

    async def land(self, project: Project, *, build: str, commit: str) -> str:
        """Create ``mendwork/<build>`` at ``commit`` and return the branch's name; already there is success.

        Runs none of the repository's hooks, filters or maintenance, and touches no other ref, no index and no file of
        the working tree. Raises BranchTaken, RepositoryRefused.
        """
        ...

    async def retract(self, project: Project, *, build: str, commit: str) -> bool:
        """Remove the branch if it still points at ``commit``; return whether it is gone."""
        ...

    async def forward(self, project: Project, *, old: str, new: str) -> None:
        """Fast-forward the project's branch from ``old`` to ``new`` by compare-and-set; already at ``new`` is success.

        Raises Overtaken when the branch is somewhere else now, RepositoryRefused when ``new`` does not descend from
        ``old`` or when a working tree has the branch checked out (it would differ from its HEAD at once).
        """
        ...

    async def rewind(self, project: Project, *, old: str, new: str) -> bool:
        """Compensation of ``forward``: back to ``old`` if the branch still is at ``new``; return whether it is at
        ``old`` now, or does not hold ``new`` otherwise. What was built on top or is checked out stays: False."""
        ...
