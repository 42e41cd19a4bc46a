"""The targets pass the suite of their port: adapters.target.memory and adapters.target.local."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from adapters.compliance.delivery.target import TargetCompliance
from adapters.target import open_target
from domain.errors import UnknownName
from domain.ports.target import Target
from tests.adapters.target_scenes import COMMANDS, local_target


class TestMemory(TargetCompliance):
    @pytest.fixture
    def target(self, tmp_path: Path) -> Target:
        return open_target(tmp_path, name="memory")

    @pytest.fixture
    def commands(self) -> Mapping[str, tuple[str, ...]]:
        return {name: (name,) for name in COMMANDS}


class TestLocal(TargetCompliance):
    @pytest.fixture
    async def target(self, tmp_path: Path) -> AsyncIterator[Target]:
        async with local_target(tmp_path) as target:
            yield target

    @pytest.fixture
    def commands(self) -> Mapping[str, tuple[str, ...]]:
        return COMMANDS


def test_an_unknown_target_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown deploy target 'moon'; known: local, memory"):
        open_target(tmp_path, name="moon")


def test_opening_the_local_target_makes_and_starts_nothing(tmp_path: Path) -> None:
    open_target(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []
