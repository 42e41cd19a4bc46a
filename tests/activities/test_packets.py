"""What a person decides about is one document with one digest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.testing import ActivityEnvironment

from activities.packets import MAX_DOCUMENT_BYTES, Packed, Packets, PackInput
from adapters.blobs.memory import MemoryBlobs
from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts, open_git
from domain.errors import RepositoryRefused, TooLarge
from domain.ports.workspace import TreeFile

DOCUMENT = {"about": "change", "cost": 1_200, "missing": [{"task": "api", "why": "it was skipped"}]}


class OneDiff:
    """The sources of a project with two commits."""

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        raise NotImplementedError

    async def read(self, project: str, commit: str, path: str) -> bytes:
        raise NotImplementedError

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        raise NotImplementedError

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        raise AssertionError("no history is asked for here")

    async def diff(self, project: str, old: str, new: str) -> str:
        assert project == "calc"
        return f"{old}..{new}"


class Desk:
    def __init__(self) -> None:
        self.blobs = MemoryBlobs()

    async def pack(self, document: Mapping[str, Any], *, base: str = "", commit: str = "") -> Packed:
        packets = Packets(sources=OneDiff(), blobs=self.blobs)
        request = PackInput(project="calc", document=document, base=base, commit=commit)
        packed = await ActivityEnvironment().run(packets.pack, request)
        assert isinstance(packed, Packed)
        return packed

    async def read(self, digest: str) -> Any:
        return json.loads(await self.blobs.get(digest))


async def test_a_packet_holds_its_document_and_no_diff_when_nothing_changed() -> None:
    desk = Desk()
    packed = await desk.pack(DOCUMENT)
    assert (packed.diff, await desk.read(packed.digest)) == ("", DOCUMENT)


async def test_a_packet_about_a_change_names_its_commits_and_its_diff() -> None:
    desk = Desk()
    packed = await desk.pack(DOCUMENT, base="c0", commit="c1")
    assert await desk.read(packed.digest) == {**DOCUMENT, "base": "c0", "commit": "c1", "diff": packed.diff}
    assert await desk.blobs.get(packed.diff) == b"c0..c1"


async def test_another_change_is_another_packet() -> None:
    desk = Desk()
    packed = [await desk.pack(DOCUMENT, base="c0", commit=commit) for commit in ("c1", "c2")]
    packed += [await desk.pack({**DOCUMENT, "cost": 1_201}, base="c0", commit="c1"), await desk.pack(DOCUMENT)]
    assert len({each.digest for each in packed}) == 4


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
async def test_the_same_content_has_the_same_digest_whatever_its_order(document: dict[str, Any]) -> None:
    desk = Desk()
    turned = dict(reversed(document.items()))
    assert await desk.pack(document, base="c0", commit="c1") == await desk.pack(turned, base="c0", commit="c1")


async def test_a_document_cannot_say_what_was_changed() -> None:
    desk = Desk()
    packed = await desk.pack({"commit": "forged", "base": "forged", "diff": "forged"}, base="c0", commit="c1")
    assert await desk.read(packed.digest) == {"base": "c0", "commit": "c1", "diff": packed.diff}


@pytest.mark.parametrize("letter", ["x", "é", "\n"])
async def test_a_document_at_the_limit_is_packed_and_one_byte_more_is_not(letter: str) -> None:
    desk = Desk()
    overhead = len(json.dumps({"text": ""}, separators=(",", ":")))
    size = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    fits, over = divmod(MAX_DOCUMENT_BYTES - overhead, size)
    await desk.pack({"text": letter * fits + "y" * over})
    with pytest.raises(TooLarge, match=rf"the packet has {MAX_DOCUMENT_BYTES + 1} bytes, at most {MAX_DOCUMENT_BYTES}"):
        await desk.pack({"text": letter * fits + "y" * (over + 1)}, base="c0", commit="c1")


async def test_the_limit_is_for_the_document_and_not_for_the_diff(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("git")
    user, ports = UserRepository(folder / "user"), open_git(folder / "state")
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    commit = user.commit({"large.txt": b"line\n" * MAX_DOCUMENT_BYTES})
    assert await ports.mirrors.fetch_base(user.project(), build="b2") == commit
    packed, diff = await _packed(ports, user, base=base, commit=commit)
    assert len(diff) > MAX_DOCUMENT_BYTES
    assert packed.diff


async def test_an_unknown_commit_is_no_packet(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("git")
    user, ports = UserRepository(folder / "user"), open_git(folder / "state")
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    with pytest.raises(RepositoryRefused):
        await _packed(ports, user, base=base, commit="0" * 40)


async def _packed(ports: GitPorts, user: UserRepository, *, base: str, commit: str) -> tuple[Packed, bytes]:
    blobs = MemoryBlobs()
    packets = Packets(sources=ports.sources, blobs=blobs)
    request = PackInput(project=user.project().name, document=DOCUMENT, base=base, commit=commit)
    packed = await ActivityEnvironment().run(packets.pack, request)
    return packed, await blobs.get(packed.diff)
