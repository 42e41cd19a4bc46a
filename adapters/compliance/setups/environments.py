"""What every store of environments must do. Subclass with the fixture ``environments``."""

from __future__ import annotations

import asyncio
import time

import pytest

from domain.errors import InvalidInput
from domain.ports.kept.environments import KeptEnvironments

KEY, OTHER = "a" * 64, "b" * 64


async def make(environments: KeptEnvironments, key: str, text: str = "content", *, project: str = "p") -> None:
    """Keep an environment with one file and a folder that its owner may not write to."""
    async with environments.making(key, project=project) as tree:
        (tree / "closed").mkdir()
        (tree / "closed" / "file").write_text(text)
        (tree / "out").symlink_to("/etc/passwd")
        (tree / "closed").chmod(0o555)


async def text_of(environments: KeptEnvironments, key: str) -> str:
    """The file of an environment that ``make`` made, "" where it is not here."""
    async with environments.using(key) as used:
        return (used.folder / "closed" / "file").read_text() if used else ""


class EnvironmentsCompliance:
    """Whole or not at all, used and removed."""

    async def test_what_was_made_is_there_until_it_is_removed(self, environments: KeptEnvironments) -> None:
        assert await text_of(environments, KEY) == ""
        await make(environments, KEY)
        assert await text_of(environments, KEY) == "content"
        assert await environments.remove(KEY)
        assert await text_of(environments, KEY) == ""
        assert await environments.remove(KEY)
        assert await environments.list() == []

    async def test_all_are_listed_with_their_project_size_and_last_use(self, environments: KeptEnvironments) -> None:
        before = time.time() - 1
        await make(environments, OTHER, "x" * 100_000, project="q")
        await make(environments, KEY)
        first, second = await environments.list()
        assert (first.key, first.project, second.key, second.project) == (KEY, "p", OTHER, "q")
        assert second.bytes >= 100_000 > first.bytes
        assert before <= first.used_at <= time.time() + 1

    async def test_using_one_is_its_last_use(self, environments: KeptEnvironments) -> None:
        await make(environments, KEY)
        (first,) = await environments.list()
        async with environments.using(KEY) as used:
            assert used is not None
            assert used.kept.key == KEY
            assert used.kept.used_at >= first.used_at

    async def test_one_that_is_used_is_not_removed(self, environments: KeptEnvironments) -> None:
        await make(environments, KEY)
        async with environments.using(KEY), environments.using(KEY):
            assert not await environments.remove(KEY)
            assert await text_of(environments, KEY) == "content"
        assert await environments.remove(KEY)

    async def test_one_that_failed_is_not_there(self, environments: KeptEnvironments) -> None:
        async def fails() -> None:
            async with environments.making(KEY, project="p") as tree:
                (tree / "half").write_text("x")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fails()
        assert await environments.list() == []
        await make(environments, KEY)
        assert await text_of(environments, KEY) == "content"

    async def test_one_that_is_being_made_is_not_seen(self, environments: KeptEnvironments) -> None:
        async with environments.making(KEY, project="p") as tree:
            (tree / "half").write_text("x")
            assert await environments.list() == []
            assert await text_of(environments, KEY) == ""
            assert await environments.remove(KEY)
            assert (tree / "half").exists()

    async def test_of_two_makers_the_first_counts_and_nothing_is_left_of_the_other(
        self, environments: KeptEnvironments
    ) -> None:
        ready = asyncio.Barrier(2)

        async def slow(text: str) -> None:
            async with environments.making(KEY, project="p") as tree:
                await ready.wait()
                (tree / "closed").mkdir()
                (tree / "closed" / "file").write_text(text)

        await asyncio.gather(slow("one"), slow("two"))
        assert await text_of(environments, KEY) in {"one", "two"}
        assert len(await environments.list()) == 1

    @pytest.mark.parametrize("key", ["", "A" * 64, "a" * 63, "../" + "a" * 61])
    async def test_what_is_no_key_is_refused(self, environments: KeptEnvironments, key: str) -> None:
        with pytest.raises(InvalidInput):
            await environments.remove(key)
        with pytest.raises(InvalidInput):
            await text_of(environments, key)
        with pytest.raises(InvalidInput):
            await make(environments, key)
