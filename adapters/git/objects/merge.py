"""A three-way merge of trees, without a working tree: git's own, on commits that fix its three sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adapters.git.failures import refusal
from adapters.git.objects.replay import Commit, write_commit
from adapters.git.run import Call, Git
from adapters.git.sources import KINDS
from domain.errors import TooLarge

_SECONDS = 600.0
_MESSAGES = 64_000_000
BEFORE, NEWER, MINE = 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One version of a file that is in conflict; ``stage`` is BEFORE, NEWER or MINE."""

    stage: int
    mode: str
    name: str

    @property
    def kind(self) -> str:
        """As ``TreeFile`` names it."""
        return KINDS.get(self.mode, "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """One path in conflict: what git says about it and its versions."""

    path: bytes
    sides: tuple[Side, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """``tree`` is clean when there are no ``clashes``, else its texts are marked with the names of the two ``ends``:
    first the newer state, then the change."""

    tree: str
    clashes: tuple[Clash, ...]
    ends: tuple[str, str]


async def merge_trees(git: Git, *, newer: Commit, before: Commit, mine: Commit) -> Merge:
    """What changed from ``before`` to its descendant ``mine``, done to the tree of ``newer``, whose history does not
    matter. Raises TooLarge when there is no end of conflicts.
    """
    # A child of an ancestor of the other has that ancestor as its merge base with it, whatever else lies between.
    left = await write_commit(git, mine, tree=newer.tree, parent=before.name)
    result = await git.outcome("merge-tree", "--write-tree", "--messages", "-z", left.name, mine.name,
                               call=Call(seconds=_SECONDS, limit=_MESSAGES))  # fmt: skip
    if result.cut:
        raise TooLarge(f"merging {mine.name[:12]} gives more than {_MESSAGES} bytes of conflicts")
    if result.code not in (0, 1):
        raise refusal(result.stderr, doing=f"merge {mine.name[:12]}")
    ends = (left.name, mine.name)
    tree, *fields = result.stdout.split(b"\0")
    clashes = tuple(_clashes(iter(fields), ends)) if result.code else ()
    return Merge(tree=tree.decode().strip(), clashes=clashes, ends=ends)


def _clashes(fields: Iterator[bytes], ends: tuple[str, str]) -> Iterator[Clash]:
    """Git's list: versions, an empty field, messages. A path that git moved aside has a name of one end attached."""
    sides: dict[bytes, list[Side]] = {}
    for field in iter(lambda: next(fields, b""), b""):
        described, _, path = field.partition(b"\t")
        mode, name, stage = described.decode().split(" ")
        sides.setdefault(_plain_path(path, ends), []).append(Side(stage=int(stage), mode=mode, name=name))
    messages: dict[bytes, list[str]] = {}
    for paths, kind, text in _messages(fields):
        if kind.startswith(b"Auto-merging"):
            continue
        for path in {_plain_path(path, ends) for path in paths}:
            messages.setdefault(path, []).append(text.decode("utf-8", "replace"))
    for path in sorted(sides or messages):
        yield Clash(path=path, sides=tuple(sides.get(path, ())), messages=tuple(messages.get(path, ())))


def _messages(fields: Iterator[bytes]) -> Iterator[tuple[list[bytes], bytes, bytes]]:
    for count in fields:
        if count.isdigit():  # beside the list stands, at the end, advice about submodules
            paths = [next(fields) for _ in range(int(count))]
            yield paths, next(fields), next(fields)


def _plain_path(path: bytes, ends: tuple[str, str]) -> bytes:
    for end in ends:
        path = path.partition(f"~{end}".encode())[0]
    return path
