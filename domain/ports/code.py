"""An index of a project's source: parsed once for each content, asked for one tree at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from domain.context.symbols import FileFacts, Matches, Mentions
from domain.ports.workspace import TreeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file's content under the object id that git has for it."""

    path: str
    oid: str
    content: bytes


class CodeIndex(Protocol):
    """A cache that may be thrown away at any time; every method may be repeated and run beside itself, in any process.

    ``files`` are those of one tree: what other trees hold never changes an answer. Files without an object id, and
    those that nobody has taught, are as if they were empty.

    Raises ResourceShort when the disk is full, Overtaken when the cache turned out to be unusable and was thrown away:
    then ``missing`` tells what has to be taught again. ``missing`` itself does not raise that.
    """

    async def missing(self, project: str, files: Collection[TreeFile]) -> tuple[TreeFile, ...]:
        """Those whose content is not known yet and has to be taught: regular files that are not left aside."""
        ...

    async def learn(self, project: str, sources: Iterable[SourceFile]) -> int:
        """Read and keep what is not known yet; return how many files that were. Never fails over a file's content."""
        ...

    async def matches(self, project: str, files: Collection[TreeFile], words: Collection[str]) -> Matches:
        """How often the files hold ``words`` (as ``domain.context.words`` makes them)."""
        ...

    async def mentions(self, project: str, files: Collection[TreeFile], names: Collection[str]) -> Mentions:
        """Where ``names`` are defined and called."""
        ...

    async def facts(self, project: str, files: Collection[TreeFile]) -> Mapping[str, FileFacts]:
        """What is known of each file, by path; meant for few files."""
        ...

    async def imports(self, project: str, files: Collection[TreeFile]) -> Mapping[str, tuple[str, ...]]:
        """What each file imports, by path; files that import nothing may be left out."""
        ...
