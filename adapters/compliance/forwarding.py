"""What every adapter must hold of moving the user's target branch.

A subclass gives the fixture ``ports``. The user's repository is a real one.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.compliance.merges import MergingPorts, line, started, written
from adapters.compliance.user_repository import UserRepository, operation
from domain.errors import Overtaken, RepositoryRefused


class ForwardingCompliance:
    """Subclass it and give the fixture ``ports``."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> UserRepository:
        return UserRepository(tmp_path / "user")

    async def test_the_target_moves_forward_once_and_back(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        new = await written(ports, base, line(1, "one"))
        repository.git("checkout", "--quiet", "-b", "elsewhere")
        refs = repository.refs()
        for _ in range(2):
            await ports.landing.forward(repository.project(), old=base, new=new)
            assert repository.refs() == refs | {"refs/heads/main": new}
        for _ in range(2):
            assert await ports.landing.rewind(repository.project(), old=base, new=new)
            assert repository.refs() == refs

    async def test_a_target_that_moved_is_not_touched(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        new = await written(ports, base, line(1, "one"))
        theirs = repository.commit({"theirs": b"1"})
        repository.git("checkout", "--quiet", "--detach")
        with pytest.raises(Overtaken):
            await ports.landing.forward(repository.project(), old=base, new=new)
        assert await ports.landing.rewind(repository.project(), old=base, new=new)
        assert repository.refs()["refs/heads/main"] == theirs

    async def test_what_was_built_on_is_not_taken_back(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        new = await written(ports, base, line(1, "one"))
        repository.git("checkout", "--quiet", "--detach")
        await ports.landing.forward(repository.project(), old=base, new=new)
        repository.git("checkout", "--quiet", "main")
        assert not await ports.landing.rewind(repository.project(), old=base, new=new)
        theirs = repository.commit({"on top": b"1"})
        repository.git("checkout", "--quiet", "--detach")
        assert not await ports.landing.rewind(repository.project(), old=base, new=new)
        assert repository.refs()["refs/heads/main"] == theirs

    async def test_only_a_descendant_is_forward(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        one, two = await written(ports, base, line(1, "1")), await written(ports, base, line(2, "2"))
        repository.git("checkout", "--quiet", "--detach")
        await ports.landing.forward(repository.project(), old=base, new=one)
        with pytest.raises(RepositoryRefused, match="no fast-forward"):
            await ports.landing.forward(repository.project(), old=one, new=two)
        assert repository.refs()["refs/heads/main"] == one

    async def test_a_branch_that_somebody_works_on_is_left(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        new = await written(ports, base, line(1, "one"))
        with pytest.raises(RepositoryRefused, match="checked out"):
            await ports.landing.forward(repository.project(), old=base, new=new)
        assert repository.refs()["refs/heads/main"] == base

    async def test_of_racing_forwards_one_wins(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        repository.git("checkout", "--quiet", "--detach")
        news = [await written(ports, base, operation("create", f"f{n}", "1")) for n in range(3)]
        moves = (ports.landing.forward(repository.project(), old=base, new=new) for new in news)
        ends = await asyncio.gather(*moves, return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["NoneType", "Overtaken", "Overtaken"]
        assert repository.refs()["refs/heads/main"] == news[ends.index(None)]
