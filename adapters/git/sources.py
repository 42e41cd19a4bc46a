"""Reading commits of a mirror: the tracked files, one file's content, a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.git.mirror import Mirror, check_sha
from adapters.git.objects.contents import Content, read_objects
from adapters.git.run import Call, Git
from domain.errors import InvalidInput, RepositoryRefused, TooLarge
from domain.ports.workspace import TreeFile

KINDS = {"100755": "executable", "120000": "symlink", "160000": "submodule"}
_DIFF_BYTES = 2_000_000
_FILE_BYTES = 64_000_000
_BATCH_BYTES = 128_000_000


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
    """Every entry below ``commit``, or below ``paths``, by its path.

    A path that is not UTF-8 is shown with backslashes: it goes through prompts, events and JSON as text that anybody
    can print, and no change can name it. Git itself is given trees and indexes, where the bytes are as they were.
    """
    listed = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, *(("--", *paths) if paths else ()),
                           doing=f"list the files of {commit[:12]}")  # fmt: skip
    return _by_path(listed)


def _by_path(listed: bytes) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    odd = []
    for path, entry in _entries(listed):
        try:
            found[path.decode()] = entry
        except UnicodeDecodeError:
            odd.append((path.decode("utf-8", "backslashreplace"), entry))
    for shown, entry in odd:
        while shown in found:  # another file's real name
            shown = f"\\{shown}"
        found[shown] = entry
    return found


def _entries(listed: bytes) -> Iterator[tuple[bytes, Entry]]:
    for line in listed.split(b"\0"):
        if line:
            fields, _, path = line.partition(b"\t")
            mode, _, name, size = fields.decode().split()
            yield path, Entry(mode=mode, name=name, size=int(size) if size.isdigit() else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSources:
    """The port ``Sources`` on the mirrors in ``folder``."""

    folder: Path

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        """Every tracked file, sorted by path."""
        mirror = Mirror(folder=self.folder, project=project)
        async with mirror.holding(commit):
            entries = await list_tree(mirror.git, f"{commit}^{{commit}}")
        return tuple(
            TreeFile(path=path, size=entry.size, kind=entry.kind, oid=entry.name)
            for path, entry in sorted(entries.items())
        )

    async def read(self, project: str, commit: str, path: str) -> bytes:
        """A file's content, or a symlink's target. Raises InvalidInput when there is none, TooLarge over 64 MB."""
        mirror = Mirror(folder=self.folder, project=project)
        async with mirror.holding(commit):
            try:
                found = await _read(mirror.git, commit, path)
            except TooLarge:
                raise TooLarge(f"{path[:200]!r} is larger than the {_FILE_BYTES} bytes that are read") from None
        if found is None or found.kind != "blob":
            await mirror.require(commit)
            raise InvalidInput(f"commit {commit[:12]} has no file {path[:200]!r}")
        return found.data

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        """Regular files' contents by path, some hundred megabytes of them at a time."""
        git = Mirror(folder=self.folder, project=project).git
        wanted = [
            file for file in files if file.oid and file.kind in ("file", "executable") and file.size <= _FILE_BYTES
        ]
        found: dict[str, bytes] = {}
        for batch in _batches(wanted):
            read = await read_objects(git, [check_sha(file.oid).encode() for file in batch])
            found |= {
                file.path: content.data
                for file, content in zip(batch, read, strict=True)
                if content is not None and content.kind == "blob"
            }
        return found

    async def diff(self, project: str, old: str, new: str) -> str:
        """A unified diff; one that is over 2 MB is cut, and its last line says so."""
        mirror = Mirror(folder=self.folder, project=project)
        ends = (f"{check_sha(old)}^{{commit}}", f"{check_sha(new)}^{{commit}}")
        result = await mirror.git.outcome("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
                                          *ends, "--", call=Call(limit=_DIFF_BYTES))  # fmt: skip
        text = result.stdout.decode("utf-8", "replace")
        if result.cut:
            return f"{text[: text.rfind(chr(10)) + 1]}[the diff is cut here: it is over {_DIFF_BYTES} bytes]\n"
        if result.code:
            for commit in (old, new):
                await mirror.require(commit)
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


def _batches(files: Sequence[TreeFile]) -> Iterator[list[TreeFile]]:
    batch: list[TreeFile] = []
    size = 0
    for file in files:
        if batch and size + file.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


async def _read(git: Git, commit: str, path: str) -> Content | None:
    """What a commit has at ``path``, which may be one that is shown with backslashes."""
    try:
        name = f"{commit}^{{commit}}:{path}".encode()
    except UnicodeEncodeError:
        return None
    if "\0" in path or {"", ".", ".."} & set(path.split("/")):
        return None
    (found,) = await read_objects(git, (name,), most=_FILE_BYTES)
    if found is None and "\\" in path and (entry := (await list_tree(git, commit)).get(path)):
        (found,) = await read_objects(git, (entry.name.encode(),), most=_FILE_BYTES)
    return found
