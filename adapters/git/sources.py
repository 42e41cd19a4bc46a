"""Reading commits of a mirror: the tracked files, one file's content, a diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adapters.git.mirror import Mirror
from adapters.git.run import Call, Git
from domain.build.change import path_problem
from domain.errors import InvalidInput, RepositoryRefused, TooLarge
from domain.ports.workspace import TreeFile

KINDS = {"100755": "executable", "120000": "symlink", "160000": "submodule"}
_DIFF_BYTES = 2_000_000
_FILE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a tree; ``size`` is 0 where there is no content of ours."""

    mode: str
    name: str
    size: int

    @property
    def kind(self) -> str:
        """As ``TreeFile`` names it; old trees hold modes such as 100664."""
        return KINDS.get(self.mode, "file")


async def list_tree(git: Git, commit: str, *paths: str) -> dict[str, Entry]:
    """Every entry below ``commit``, or below ``paths``; a path that is not UTF-8 is shown with backslashes."""
    listed = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, *(("--", *paths) if paths else ()),
                           doing=f"list the files of {commit[:12]}")  # fmt: skip
    return dict(_entries(listed))


def _entries(listed: bytes) -> Iterator[tuple[str, Entry]]:
    for line in listed.split(b"\0"):
        if line:
            fields, _, path = line.partition(b"\t")
            mode, _, name, size = fields.decode().split()
            yield (
                path.decode("utf-8", "backslashreplace"),
                Entry(mode=mode, name=name, size=int(size) if size.isdigit() else 0),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSources:
    """The port ``Sources`` on the mirrors in ``folder``."""

    folder: Path

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        """Every tracked file, sorted by path."""
        mirror = Mirror(folder=self.folder, project=project)
        entries = await list_tree(mirror.git, await mirror.require(commit))
        return tuple(TreeFile(path=path, size=entry.size, kind=entry.kind) for path, entry in sorted(entries.items()))

    async def read(self, project: str, commit: str, path: str) -> bytes:
        """A file's content, or a symlink's target. Raises InvalidInput when there is none, TooLarge over 64 MB."""
        mirror = Mirror(folder=self.folder, project=project)
        await mirror.require(commit)
        entry = None if path_problem(path) else (await list_tree(mirror.git, commit, path)).get(path)
        if entry is None or entry.kind == "submodule":
            raise InvalidInput(f"commit {commit[:12]} has no file {path[:200]!r}")
        if entry.size > _FILE_BYTES:
            raise TooLarge(f"{path} has {entry.size} bytes; at most {_FILE_BYTES} are read")
        return await read_blob(mirror.git, entry)

    async def diff(self, project: str, old: str, new: str) -> str:
        """A unified diff; one that is over 2 MB is cut, and its last line says so."""
        mirror = Mirror(folder=self.folder, project=project)
        ends = (await mirror.require(old), await mirror.require(new))
        result = await mirror.git.outcome("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
                                          *ends, "--", call=Call(limit=_DIFF_BYTES))  # fmt: skip
        text = result.stdout.decode("utf-8", "replace")
        if result.cut:
            return f"{text[: text.rfind(chr(10)) + 1]}[the diff is cut here: it is over {_DIFF_BYTES} bytes]\n"
        if result.code:
            raise InvalidInput(f"{old[:12]} and {new[:12]} cannot be compared")
        return text

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        """Whether ``ancestor`` is ``commit`` or in its history; what the mirror does not have is not."""
        mirror = Mirror(folder=self.folder, project=project)
        try:
            names = (await mirror.require(ancestor), await mirror.require(commit))
        except RepositoryRefused:
            return False
        return (await mirror.git.outcome("merge-base", "--is-ancestor", *names)).code == 0


async def read_blob(git: Git, entry: Entry) -> bytes:
    """The content of a file or link, byte for byte."""
    return await git.run("cat-file", "blob", entry.name, doing=f"read {entry.name}")
