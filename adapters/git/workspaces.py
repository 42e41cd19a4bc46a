"""Workspaces: a commit's files in a fresh folder, and commits made from changes without any folder at all."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.git.changes import check_spelling, content_after, mode_after, refuse
from adapters.git.failures import system_refusal
from adapters.git.folders import fresh_folder, private_index, remove_tree
from adapters.git.mirror import Mirror
from adapters.git.run import Call, Git
from adapters.git.sources import Entry, list_tree, read_blob
from domain.build.change import FileOperation
from domain.errors import InvalidChange
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
        await mirror.require(commit)
        try:
            folder = await asyncio.to_thread(fresh_folder, self.work, label)
        except OSError as error:
            raise system_refusal(error, doing="make a folder for a checkout") from error
        try:
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
            for words in (("read-tree", commit), ("checkout-index", "--all", "--quiet")):
                await git.run(*words, doing=f"check out {commit[:12]}", call=call)

    async def commit(self, request: CommitRequest) -> Candidate:
        """Apply the change to ``base`` and commit it, pinned in the mirror; the build's head does not move."""
        check_spelling(request)
        mirror = Mirror(folder=self.folder, project=request.project)
        await mirror.require(request.base)
        written = await self._judge(mirror.git, request)
        commit = await self._record(mirror.git, request, await self._store(mirror.git, request.base, written))
        await mirror.pin(request.build, commit)
        return Candidate(commit=commit, written={file.path: _digest(file.content) for file in written})

    async def _judge(self, git: Git, request: CommitRequest) -> list[_Written]:
        """What the change writes, all of it or nothing. Raises InvalidChange."""
        entries = await list_tree(git, request.base)
        written, reasons = [], []
        for operation in request.change.operations:
            try:
                file = await self._apply(git, operation, entries, request.file_bytes)
            except InvalidChange as problem:
                reasons.append(str(problem))
                continue
            written.append(file)
            entries.pop(file.path, None)
            if file.content is not None:
                entries[file.path] = Entry(mode=file.mode, name="", size=len(file.content))
        refuse(reasons)
        return written

    async def _apply(self, git: Git, operation: FileOperation, entries: dict[str, Entry], file_bytes: int) -> _Written:
        mode = mode_after(operation, entries)
        old = b""
        if operation.action == "edit":
            entry = entries[operation.path]
            _check_size(operation.path, entry.size, file_bytes)
            old = await read_blob(git, entry)
        content = content_after(operation, old)
        _check_size(operation.path, len(content or b""), file_bytes)
        return _Written(path=operation.path, mode=mode, content=content)

    async def _store(self, git: Git, base: str, written: list[_Written]) -> str:
        """Write the new tree and return its name. Raises InvalidChange when it is that of ``base``."""
        lines = []
        for file in written:
            mode, name = ("0", "0" * len(base))
            if file.content is not None:
                mode, name = file.mode, await self._store_blob(git, file.content)
            lines.append(f"{mode} {name}\t{file.path}\0".encode())
        with private_index(self.work) as index:
            variables = {"GIT_INDEX_FILE": str(index)}
            doing = "write the change's tree"
            await git.run("read-tree", base, doing=doing, call=Call(variables=variables))
            call = Call(variables=variables, stdin=b"".join(lines))
            await git.run("update-index", "-z", "--index-info", doing=doing, call=call)
            tree = await git.run("write-tree", doing=doing, call=Call(variables=variables))
        if tree == await git.run("rev-parse", "--verify", f"{base}^{{tree}}", doing=doing):
            raise InvalidChange("the change leaves every file as it was")
        return tree.decode().strip()

    async def _store_blob(self, git: Git, content: bytes) -> str:
        name = await git.run("hash-object", "-w", "--no-filters", "--stdin", doing="store a file",
                             call=Call(stdin=content))  # fmt: skip
        return name.decode().strip()

    async def _record(self, git: Git, request: CommitRequest, tree: str) -> str:
        """Write the commit object; the same request gives the same one."""
        date = f"@{request.at} +0000"
        variables = {**_AUTHOR, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        name = await git.run("commit-tree", tree, "-p", request.base, "-F", "-", doing="write the commit",
                             call=Call(variables=variables, stdin=_message(request.message)))  # fmt: skip
        return name.decode().strip()


def _message(text: str) -> bytes:
    """A commit message that is safe to print: models write parts of it."""
    lines = ("".join(c for c in line if c.isprintable()).rstrip() for line in text.splitlines())
    return ("\n".join(lines).strip() + "\n").encode("utf-8", "replace")


def _check_size(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise InvalidChange(f"{path}: has {size} bytes; at most {limit} are allowed")


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
