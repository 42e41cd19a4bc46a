"""A commit written again with another tree and parent; everything that its author gave it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.git.failures import plain
from adapters.git.mirror import Mirror, check_sha
from adapters.git.run import Call, Git
from domain.errors import InvalidInput, RepositoryRefused

_KEPT = (b"author ", b"committer ", b"encoding ")  # not the signatures, which would be wrong
_LONGEST_CHAIN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit object; ``kept`` are the bytes of its header's lines that say who and when, ``message`` the rest."""

    name: str
    tree: str
    parents: tuple[str, ...]
    kept: bytes
    message: bytes

    @property
    def subject(self) -> str:
        """Its first line, safe to print."""
        return plain(self.message.partition(b"\n")[0].decode("utf-8", "replace"))[:120]


async def read_commits(mirror: Mirror, names: Sequence[str]) -> dict[str, Commit]:
    """The commits of these full names. Raises InvalidInput, and RepositoryRefused when the mirror lacks one."""
    if not mirror.path.exists():
        raise RepositoryRefused(f"project {mirror.project} has no mirror yet: nothing was fetched for it")
    asked = "".join(f"{check_sha(name)}\n" for name in names).encode()
    left = await mirror.git.run("cat-file", "--batch", doing="read commits", call=Call(stdin=asked))
    found = {}
    for name in names:
        header, _, left = left.partition(b"\n")
        kind, _, size = header.partition(b" ")[2].partition(b" ")
        if kind != b"commit":
            raise RepositoryRefused(f"the mirror of project {mirror.project} has no commit {name}")
        found[name] = _parsed(name, left[: int(size)])
        left = left[int(size) + 1 :]
    return found


def _parsed(name: str, content: bytes) -> Commit:
    header, _, message = content.partition(b"\n\n")
    lines = header.split(b"\n")
    fields = [line.partition(b" ")[::2] for line in lines]
    return Commit(
        name=name,
        tree=next(value.decode() for key, value in fields if key == b"tree"),
        parents=tuple(value.decode() for key, value in fields if key == b"parent"),
        kept=b"".join(line + b"\n" for line in lines if line.startswith(_KEPT)),
        message=message,
    )


async def write_commit(git: Git, like: Commit, *, tree: str, parent: str) -> Commit:
    """``like`` with this tree and parent; the same arguments give the same name."""
    content = f"tree {tree}\nparent {parent}\n".encode() + like.kept + b"\n" + like.message
    name = await git.run("hash-object", "-t", "commit", "-w", "--stdin", doing=f"write {like.name[:12]} again",
                         call=Call(stdin=content))  # fmt: skip
    return Commit(name=name.decode().strip(), tree=tree, parents=(parent,), kept=like.kept, message=like.message)


async def list_chain(mirror: Mirror, base: str, head: str) -> list[str]:
    """The commits after ``base`` up to ``head``, oldest first; ``head`` alone when they are to become one.

    They become one when there is a merge among them, whose resolutions would be lost, or when they are very many.
    Raises InvalidInput when ``head`` does not descend from ``base``.
    """
    listed = await mirror.git.run("rev-list", "--topo-order", "--reverse", "--parents", f"{base}..{head}",
                                  doing=f"list the commits up to {head[:12]}")  # fmt: skip
    lines = [line.split() for line in listed.decode().splitlines()]
    if not lines:
        return []
    names = [name for name, *_ in lines]
    if [parents for _, *parents in lines] == [[base], *([name] for name in names[:-1])]:
        return names if len(names) <= _LONGEST_CHAIN else [head]
    if (await mirror.git.outcome("merge-base", "--is-ancestor", base, head)).code:
        raise InvalidInput(f"{head[:12]} does not descend from {base[:12]}: there is no telling what it changed")
    return [head]
