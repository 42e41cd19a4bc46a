"""Environments in a folder; makers and users that are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.compliance.setups.environments import KEY, EnvironmentsCompliance, make, text_of
from adapters.environments import open_environments
from adapters.environments.trees import remove_tree, size_of
from domain.errors import ResourceShort, UnknownName
from domain.ports.kept.environments import KeptEnvironments

ROOT = Path(__file__).parents[2]
# Holds an environment (the second argument is "making" or "using") until it is killed.
HOLDS = """
import asyncio, sys
from pathlib import Path
from adapters.environments import open_environments
async def main():
    environments = open_environments(Path(sys.argv[1]))
    held = environments.making("a" * 64, project="p") if sys.argv[2] == "making" else environments.using("a" * 64)
    async with held as found:
        if sys.argv[2] == "making":
            (found / "half").write_text("x")
        print("held", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.fixture
def environments(tmp_path: Path) -> KeptEnvironments:
    return open_environments(tmp_path)


class TestFiles(EnvironmentsCompliance):
    pass


@contextmanager
def holder(folder: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds an environment; killed in the end."""
    argv = [sys.executable, "-c", HOLDS, str(folder), how]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


async def test_what_a_killed_maker_left_is_never_seen_and_goes_with_the_next(
    environments: KeptEnvironments, tmp_path: Path
) -> None:
    with holder(tmp_path, "making"):
        pass
    assert [path.name[:6] for path in (tmp_path / "environments").iterdir()] == ["making"]
    assert await environments.list() == []
    await make(environments, KEY)
    assert [path.name for path in (tmp_path / "environments").iterdir()] == [KEY]


async def test_what_another_process_is_making_is_left_alone(environments: KeptEnvironments, tmp_path: Path) -> None:
    with holder(tmp_path, "making"):
        await make(environments, KEY)
        assert len(list((tmp_path / "environments").iterdir())) == 2
    assert await text_of(environments, KEY) == "content"


async def test_what_another_process_uses_is_not_removed_until_it_dies(
    environments: KeptEnvironments, tmp_path: Path
) -> None:
    await make(environments, KEY)
    with holder(tmp_path, "using"):
        assert not await environments.remove(KEY)
    assert await environments.remove(KEY)


async def test_a_folder_that_cannot_be_made_is_a_shortage(tmp_path: Path) -> None:
    (tmp_path / "environments").write_text("in the way")
    with pytest.raises(ResourceShort):
        await make(open_environments(tmp_path), KEY)


def test_another_kind_of_store_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="files"):
        open_environments(tmp_path, name="s3")


def test_no_link_is_followed_when_a_tree_is_measured_or_removed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_bytes(bytes(1_000_000))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "file").write_bytes(bytes(10_000))
    (tree / "twin").hardlink_to(tree / "file")
    assert 10_000 <= size_of(tree) < 20_000
    remove_tree(tree)
    assert not tree.exists()
    assert (tmp_path / "outside" / "kept").exists()
