"""Contents of many objects by one git."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapters.git.failures import plain, refusal
from adapters.git.run import Call, Git
from domain.errors import RepositoryRefused, TooLarge

_HEADER = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) ([a-z]+) (\d+)\n")
_MOST = 256_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One object: its name, what it is ("blob", "tree", "commit"), its bytes."""

    name: str
    kind: str
    data: bytes


async def read_objects(git: Git, names: Sequence[bytes], *, most: int = _MOST) -> list[Content | None]:
    """What each of ``names`` (object names, or ``commit:path``) stands for; None for what is not there.
    A path may not start with a dot and a slash, or two dots: git would take it as relative, and end.

    Raises TooLarge when it is more than ``most`` bytes in all.
    """
    listed = b"".join(name + b"\0" for name in names)
    overhead = sum(len(name) + 100 for name in names)
    result = await git.outcome("cat-file", "--batch", "-z", call=Call(stdin=listed, limit=most + overhead))
    if result.cut:
        raise TooLarge(f"more than {most} bytes are to be read")
    if result.code:
        raise refusal(result.stderr, doing="read files")
    return list(_contents(memoryview(result.stdout), names))


def _contents(output: memoryview, names: Sequence[bytes]) -> Iterator[Content | None]:
    """One answer a name. That for a name which is not there repeats it, with whatever line ends it has."""
    at = 0
    for name in names:
        missing = name + b" missing\n"
        if output[at : at + len(missing)] == missing:
            yield None
            at += len(missing)
        else:
            match = _HEADER.match(output, at)
            if match is None:
                raise RepositoryRefused(f"could not read files: git says {plain(repr(bytes(output[at : at + 80])))}")
            start, size = match.end(), int(match[3])
            yield Content(name=match[1].decode(), kind=match[2].decode(), data=bytes(output[start : start + size]))
            at = start + size + 1
