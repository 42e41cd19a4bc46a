"""What keeps the commits of snapshots, whatever becomes of their builds: against real repositories of a user."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from domain.errors import BranchTaken, InvalidInput, InvalidName, RepositoryRefused
from domain.ports.workspace import Mirrors, SnapshotPins, Sources, Workspaces


class KeptMirrors(Mirrors, SnapshotPins, Protocol):
    """Mirrors that keep commits of snapshots, too."""


class SnapshotPorts(Protocol):
    """The ports of one adapter."""

    @property
    def mirrors(self) -> KeptMirrors: ...
    @property
    def sources(self) -> Sources: ...
    @property
    def workspaces(self) -> Workspaces: ...


class SnapshotPinsCompliance:
    """Subclass it and give the fixture ``ports``."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> UserRepository:
        return UserRepository(tmp_path / "user")

    async def written(self, ports: SnapshotPorts, base: str, name: str = "new", *, build: str = "b1") -> str:
        return (await ports.workspaces.commit(request(base, operation("create", name, "1"), build=build))).commit

    async def test_pins_are_listed_by_build_and_number(self, ports: SnapshotPorts, repository: UserRepository) -> None:
        assert tuple(await ports.mirrors.snapshots("shop")) == ()
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        for build, number in (("b10", 1), ("b1", 10), ("b1", 2), ("b1", 2)):
            await ports.mirrors.pin_snapshot("shop", build=build, number=number, commits=(base, base))
        assert tuple(await ports.mirrors.snapshots("shop")) == (("b1", 2), ("b1", 10), ("b10", 1))

    async def test_an_aborted_build_leaves_its_snapshots(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        head = await self.written(ports, base)
        await ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base, head))
        await ports.mirrors.forget("shop", build="b1")
        await ports.mirrors.restore(repository.project(), build="b2", base=base, head=head)
        assert await ports.mirrors.head("shop", build="b2") == head
        assert await ports.sources.read("shop", head, "new") == b"1"

    async def test_a_restored_build_is_as_one_that_fetched(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        head = await self.written(ports, base)
        repository.commit({"app.py": b"later\n"})
        for _ in range(2):
            await ports.mirrors.restore(repository.project(), build="b2", base=base, head=head)
        assert await ports.mirrors.fetch_base(repository.project(), build="b2") == base, "its base is where it was"
        assert await ports.mirrors.head("shop", build="b2") == head

    async def test_a_repeat_that_comes_late_does_not_move_the_head_back(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        await ports.mirrors.restore(repository.project(), build="b2", base=base, head=base)
        moved = await self.written(ports, base, build="b2")
        await ports.mirrors.advance("shop", build="b2", old=base, new=moved)
        await ports.mirrors.restore(repository.project(), build="b2", base=base, head=base)
        assert await ports.mirrors.head("shop", build="b2") == moved

    async def test_a_build_that_has_a_base_takes_no_other(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        other = await self.written(ports, base)
        with pytest.raises(RepositoryRefused, match="started from"):
            await ports.mirrors.restore(repository.project(), build="b1", base=other, head=other)
        assert await ports.mirrors.head("shop", build="b1") == base

    async def test_the_same_number_taken_again_keeps_both(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        first, second = await self.written(ports, base, "a"), await self.written(ports, base, "b")
        for commits in ((base, first), (base, second), (base, first)):
            await ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=commits)
        await ports.mirrors.forget("shop", build="b1")
        for build, head in (("b2", first), ("b3", second)):
            await ports.mirrors.restore(repository.project(), build=build, base=base, head=head)

    async def test_writers_at_once_lose_nothing(self, ports: SnapshotPorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        heads = [await self.written(ports, base, f"f{n}") for n in range(3)]
        await asyncio.gather(
            *(ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base, head)) for head in heads * 2)
        )
        await ports.mirrors.forget("shop", build="b1")
        for n, head in enumerate(heads):
            await ports.mirrors.restore(repository.project(), build=f"r{n}", base=base, head=head)

    async def test_what_is_missing_is_named_and_nothing_is_pinned(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        missing = "0123456789" * 4
        with pytest.raises(RepositoryRefused, match=missing):
            await ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base, missing))
        with pytest.raises(RepositoryRefused, match="not kept any more"):
            await ports.mirrors.restore(repository.project(), build="b2", base=base, head=missing)
        assert tuple(await ports.mirrors.snapshots("shop")) == ()
        with pytest.raises(RepositoryRefused):
            await ports.mirrors.head("shop", build="b2")

    async def test_unpinned_is_gone_for_good(self, ports: SnapshotPorts, repository: UserRepository) -> None:
        await ports.mirrors.unpin("shop", build="b1", number=1)
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        for number in (1, 11):
            await ports.mirrors.pin_snapshot("shop", build="b1", number=number, commits=(base,))
        for _ in range(2):
            await ports.mirrors.unpin("shop", build="b1", number=1)
        assert tuple(await ports.mirrors.snapshots("shop")) == (("b1", 11),)

    async def test_a_result_that_could_not_land_is_refused_at_the_start(
        self, ports: SnapshotPorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        repository.git("branch", "mendwork/b2")
        with pytest.raises(BranchTaken):
            await ports.mirrors.restore(repository.project(), build="b2", base=base, head=base)

    async def test_names_that_lead_out_are_refused(self, ports: SnapshotPorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        for build in ("../x", "a/b", "", "x.lock"):
            with pytest.raises(InvalidName):
                await ports.mirrors.pin_snapshot("shop", build=build, number=1, commits=(base,))
            with pytest.raises(InvalidName):
                await ports.mirrors.unpin("shop", build=build, number=1)
        for commit in ("HEAD", "--help", "refs/heads/main"):
            with pytest.raises(InvalidInput):
                await ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(commit,))
