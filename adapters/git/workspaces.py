"""Workspaces: a commit's files in a fresh folder, and commits made from changes without any folder at all."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from adapters.git.changes import PROGRAM, check_spelling, content_after, mode_after, moved_programs, refuse
from adapters.git.failures import system_refusal
from adapters.git.folders import fresh_folder, private_index, remove_tree
from adapters.git.mirror import Mirror
from adapters.git.objects.contents import read_objects
from adapters.git.run import Call, Git
from adapters.git.sources import Entry, list_tree
from domain.build.change import FileOperation
from domain.errors import InvalidChange, RepositoryRefused
from domain.ports.workspace import Candidate, CommitRequest

_AUTHOR = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Mendwork"), ("EMAIL", "mendwork@localhost"))
}
_CHECKOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """One file of the new commit; ``content`` is None when it is gone."""

    path: str
    mode: str
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GitWorkspaces:
    """The port ``Workspaces``: mirrors in ``folder``, checkouts in ``work``."""

    folder: Path
    work: Path

    @asynccontextmanager
    async def checkout(self, project: str, commit: str, *, label: str) -> AsyncIterator[Path]:
        """A new folder with the commit's files and no ``.git``; removed on exit."""
        mirror = Mirror(folder=self.folder, project=project)
        if not mirror.path.exists():
            await mirror.require(commit)
        try:
            folder = await asyncio.to_thread(fresh_folder, self.work, label)
        except OSError as error:
            raise system_refusal(error, doing="make a folder for a checkout") from error
        try:
            async with mirror.holding(commit):
                await self._fill(mirror.git, commit, folder)
            yield folder
        finally:
            await asyncio.shield(asyncio.to_thread(remove_tree, folder))

    async def _fill(self, git: Git, commit: str, folder: Path) -> None:
        git = Git(directory=git.directory, home=git.home, umask=0o022)
        with private_index(self.work) as index:
            call = Call(
                variables={"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}, seconds=_CHECKOUT_SECONDS
            )
            for words in (("read-tree", f"{commit}^{{commit}}"), ("checkout-index", "--all", "--quiet")):
                await git.run(*words, doing=f"check out {commit[:12]}", call=call)

    async def commit(self, request: CommitRequest) -> Candidate:
        """Apply the change to ``base`` and commit it, pinned in the mirror; the build's head does not move."""
        check_spelling(request)
        mirror = Mirror(folder=self.folder, project=request.project)
        async with mirror.holding(request.base):
            entries = await list_tree(mirror.git, f"{request.base}^{{commit}}")
        was, old = await _read_edited(mirror.git, request, entries)
        written = _judge(request, entries, old)
        tree = await self._store(mirror.git, request.base, written)
        if tree == was:
            raise InvalidChange("the change leaves every file as it was")
        commit = await self._record(mirror.git, request, tree)
        await mirror.pin(request.build, commit)
        return Candidate(commit=commit, written={file.path: _digest(file.content) for file in written})

    async def _store(self, git: Git, base: str, written: list[_Written]) -> str:
        """Write the new tree and return its name."""
        doing = "write the change's tree"
        with private_index(self.work) as index:
            names = iter(await _store_blobs(git, [file.content for file in written if file.content is not None], index))
            variables = {"GIT_INDEX_FILE": str(index)}
            lines = b"".join(
                f"{file.mode} {next(names)}\t{file.path}\0".encode()
                if file.content is not None
                else f"0 {'0' * len(base)}\t{file.path}\0".encode()
                for file in written
            )
            await git.run("read-tree", base, doing=doing, call=Call(variables=variables))
            call = Call(variables=variables, stdin=lines)
            await git.run("update-index", "-z", "--index-info", doing=doing, call=call)
            tree = await git.run("write-tree", doing=doing, call=Call(variables=variables))
        return tree.decode().strip()

    async def _record(self, git: Git, request: CommitRequest, tree: str) -> str:
        """Write the commit object; the same request gives the same one."""
        date = f"@{request.at} +0000"
        variables = {**_AUTHOR, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        name = await git.run("commit-tree", tree, "-p", request.base, "-F", "-", doing="write the commit",
                             call=Call(variables=variables, stdin=_message(request.message)))  # fmt: skip
        return name.decode().strip()


async def _read_edited(git: Git, request: CommitRequest, entries: Mapping[str, Entry]) -> tuple[str, dict[str, bytes]]:
    """The name of the base's tree, and the files that are edited, as far as they are not too large, by one git."""
    edited = {operation.path: entries[operation.path] for operation in request.change.operations
              if operation.action == "edit" and operation.path in entries}  # fmt: skip
    fit = {path: entry for path, entry in edited.items()
           if entry.size <= request.file_bytes and entry.kind in ("file", "executable")}  # fmt: skip
    names = [f"{request.base}^{{tree}}".encode(), *(entry.name.encode() for entry in fit.values())]
    tree, *found = await read_objects(git, names)
    if tree is None or None in found:
        raise RepositoryRefused(f"the mirror of project {request.project} lacks part of commit {request.base[:12]}")
    return tree.name, {path: content.data for path, content in zip(fit, found, strict=True) if content}


def _judge(request: CommitRequest, entries: dict[str, Entry], old: Mapping[str, bytes]) -> list[_Written]:
    """What the change writes, all of it or nothing. Raises InvalidChange."""
    written, reasons = [], []
    programs = moved_programs(request, entries)
    for operation in request.change.operations:
        try:
            file = _apply(operation, entries, old, request.file_bytes)
        except InvalidChange as problem:
            reasons.append(str(problem))
            continue
        if operation.action == "create" and file.path.rpartition("/")[2] in programs:
            file = replace(file, mode=PROGRAM)
        written.append(file)
        entries.pop(file.path, None)
        if file.content is not None:
            entries[file.path] = Entry(mode=file.mode, name="", size=len(file.content))
    refuse(reasons)
    return written


def _apply(
    operation: FileOperation, entries: Mapping[str, Entry], old: Mapping[str, bytes], file_bytes: int
) -> _Written:
    mode = mode_after(operation, entries)
    if operation.action == "edit":
        _check_size(operation.path, entries[operation.path].size, file_bytes)
    content = content_after(operation, old.get(operation.path, b""))
    _check_size(operation.path, len(content or b""), file_bytes)
    return _Written(path=operation.path, mode=mode, content=content)


async def _store_blobs(git: Git, contents: Sequence[bytes], beside: Path) -> list[str]:
    """Their names, in the same order, by one git, which reads them from files next to ``beside``."""
    files = [beside.with_name(f"content-{number}") for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    if not files:
        return []
    listed = await git.run("hash-object", "-w", "--no-filters", "--stdin-paths", doing="store the files",
                           call=Call(stdin="".join(f"{file}\n" for file in files).encode()))  # fmt: skip
    return listed.decode().split()


def _message(text: str) -> bytes:
    """A commit message that is safe to print: models write parts of it."""
    lines = ("".join(c for c in line if c.isprintable()).rstrip() for line in text.splitlines())
    return ("\n".join(lines).strip() + "\n").encode("utf-8", "replace")


def _check_size(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise InvalidChange(f"{path}: has {size} bytes; at most {limit} are allowed")


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
