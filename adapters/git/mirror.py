"""One project's private bare repository: where it is, how it comes to be, and its refs."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import refusal
from adapters.git.folders import remove_tree
from adapters.git.run import Call, Git, Result
from domain.build.names import check_build_name, check_project_name
from domain.errors import InvalidInput, RepositoryRefused, ResourceShort

# The highest precedence that attributes have: nothing in a repository's own .gitattributes can change a byte.
_ATTRIBUTES = "* -text !eol -crlf -filter -ident !working-tree-encoding -export-subst -export-ignore diff !merge\n"
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SNAPSHOTS = "refs/mendwork/snapshots"
_LOCK_SECONDS = 3600.0
_LOCK_PAUSE = 0.02


def check_sha(commit: str) -> str:
    """Return ``commit`` if it is a full object name, so that it can stand on a command line. Raises InvalidInput."""
    if not _SHA.fullmatch(commit):
        raise InvalidInput(f"{commit[:80]!r} is not a commit's full name")
    return commit


def build_ref(build: str, *names: str) -> str:
    """A ref of ``build`` in the mirror."""
    return "/".join(("refs/mendwork/builds", check_build_name(build), *names))


def snapshot_ref(build: str, number: int) -> str:
    """What the pins of a snapshot begin with in the mirror."""
    return f"{SNAPSHOTS}/{check_build_name(build)}/{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """``folder`` holds every project's mirror and the home that git sees."""

    folder: Path
    project: str

    @property
    def path(self) -> Path:
        """The bare repository, which may not exist yet."""
        return self.folder / f"{check_project_name(self.project)}.git"

    @property
    def git(self) -> Git:
        """Its git; what it writes is readable by us alone."""
        return Git(directory=self.path, home=self.folder / ".home", umask=0o077)

    async def ensure(self, object_format: str) -> None:
        """Create the mirror if there is none; a half made one is never seen. The caller holds the fetch lock."""
        if self.path.exists():
            return
        for abandoned in self.folder.glob(f".{self.project}-????????"):
            remove_tree(abandoned)
        started = self.folder / f".{self.project}-{secrets.token_hex(4)}"
        started.mkdir(mode=0o700)
        try:
            git = Git(directory=started, home=self.folder / ".home", umask=0o077)
            await git.run("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}",
                          doing="create the mirror")  # fmt: skip
            (started / "info").mkdir(exist_ok=True)
            (started / "info" / "attributes").write_text(_ATTRIBUTES)
            started.rename(self.path)
        except BaseException:
            remove_tree(started)
            raise

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[int]:
        """Be the only one, of all processes, inside the lock ``name`` ("fetch" or "refs") of this mirror.

        A git that inherits the yielded descriptor keeps the lock while it lives, even when its worker was killed; so
        whoever holds the lock knows that a git lock file found inside belongs to nobody. Raises ResourceShort.
        """
        descriptor = os.open(self.folder / f"{self.project}.{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _acquire(descriptor, name)
            yield descriptor
        finally:
            os.close(descriptor)

    def drop_stale(self, *names: str) -> None:
        """Remove git's own lock files, which a git that was killed leaves for ever. The caller holds our lock."""
        for name in names:
            (self.path / f"{name}.lock").unlink(missing_ok=True)

    async def ref(self, name: str) -> str | None:
        """What a ref points at; None when it, or the mirror, does not exist."""
        # A loose ref is a file with one line and wins over a packed one: that needs no process.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            line = (self.path / name).read_text("ascii", "replace").strip()
            if _SHA.fullmatch(line):
                return line
        if not (self.path / "packed-refs").exists():
            return None
        result = await self.git.outcome("rev-parse", "--verify", "--quiet", name)
        return result.stdout.decode().strip() if result.code == 0 else None

    async def update_ref(self, name: str, new: str, old: str) -> Result:
        """Compare and set; an empty ``old`` means that the ref must not exist, an empty ``new`` removes it."""
        words = ("--no-deref", name, new, old) if new else ("--no-deref", "-d", name, *filter(None, (old,)))
        async with self.lock("refs") as held:
            self.drop_stale(name, "packed-refs")
            return await self.git.outcome("update-ref", *words, call=Call(keep=(held,)))

    async def create_refs(self, commit: str, *names: str, gone: str) -> bool:
        """Create ``names`` at ``commit`` and remove ``gone``, all or nothing; False when one of them is there."""
        lines = [f"create {name}\0{commit}\0" for name in names]
        async with self.lock("refs") as held:
            self.drop_stale("packed-refs", gone, *names)
            call = Call(stdin="".join([*lines, f"delete {gone}\0\0"]).encode(), keep=(held,))
            return (await self.git.outcome("update-ref", "--no-deref", "-z", "--stdin", call=call)).code == 0

    async def pin(self, build: str, commit: str) -> None:
        """Keep ``commit`` for ``build``; pinned already is success."""
        name = build_ref(build, "candidates", commit)
        result = await self.update_ref(name, commit, "")
        if result.code and await self.ref(name) != commit:
            raise refusal(result.stderr, doing=f"pin the commit {commit[:12]}")

    async def pin_below(self, prefix: str, commits: Sequence[str]) -> None:
        """Keep ``commits`` as ``prefix``/1, /2 and so on, all or none; what is kept there already stays."""
        doing = f"keep commits below {prefix}"
        async with self.lock("refs") as held:
            listed = await self.git.run("for-each-ref", "--format=%(objectname) %(refname)", prefix, doing=doing)
            kept = dict(line.split(" ", 1) for line in listed.decode().splitlines())
            first = 1 + max((int(name.rpartition("/")[2]) for name in kept.values()), default=0)
            wanted = [commit for commit in dict.fromkeys(commits) if commit not in kept]
            names = [f"{prefix}/{number}" for number in range(first, first + len(wanted))]
            if not wanted:
                return
            self.drop_stale("packed-refs", *names)
            lines = "".join(f"create {name}\0{commit}\0" for name, commit in zip(names, wanted, strict=True))
            await self.git.run("update-ref", "--no-deref", "-z", "--stdin", doing=doing,
                               call=Call(stdin=lines.encode(), keep=(held,)))  # fmt: skip

    async def drop_below(self, prefix: str) -> None:
        """Remove every ref below ``prefix``, all or none. Raises Overtaken when another writer keeps one."""
        doing = f"remove the refs below {prefix}"
        async with self.lock("refs") as held:
            listed = await self.git.run("for-each-ref", "--format=%(refname)", prefix, doing=doing)
            names = listed.decode().splitlines()
            if not names:
                return
            self.drop_stale("packed-refs", *names)
            wanted = "".join(f"delete {name}\0\0" for name in names).encode()
            await self.git.run("update-ref", "--no-deref", "-z", "--stdin", doing=doing,
                               call=Call(stdin=wanted, keep=(held,)))  # fmt: skip

    @asynccontextmanager
    async def holding(self, *commits: str) -> AsyncIterator[None]:
        """Around a git that fails without ``commits``: only when it does they are looked for, which takes processes.

        Raises RepositoryRefused with the one that is not there, InvalidInput.
        """
        for commit in commits:
            check_sha(commit)
        if not self.path.exists():
            await self.require(commits[0])
        try:
            yield
        except RepositoryRefused:
            for commit in commits:
                await self.require(commit)
            raise

    async def require(self, commit: str) -> str:
        """Return ``commit`` if the mirror has it. Raises RepositoryRefused, InvalidInput."""
        check_sha(commit)
        if not self.path.exists():
            raise RepositoryRefused(f"project {self.project} has no mirror yet: nothing was fetched for it")
        if (await self.git.outcome("cat-file", "-e", f"{commit}^{{commit}}")).code:
            raise RepositoryRefused(f"the mirror of project {self.project} has no commit {commit}")
        return commit


async def _acquire(descriptor: int, name: str) -> None:
    # Polled, because a thread that blocks in flock cannot be cancelled.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOCK_SECONDS):
            while not _try_lock(descriptor):  # noqa: ASYNC110  flock has no event to wait for
                await asyncio.sleep(_LOCK_PAUSE)
            return
    raise ResourceShort(f"the mirror's {name} lock was not free within {_LOCK_SECONDS:g} s")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
