"""What hosts have in common: mirrors in a shared folder, where any of them goes on from what another one did."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.compliance.workspace import WorkspaceCompliance
from adapters.git.adapter import GitPorts, open_git
from adapters.settings import load_settings
from domain.errors import Overtaken, ResourceShort


def hosts(folder: Path) -> tuple[GitPorts, GitPorts]:
    """Two with state folders of their own and mirrors in common."""
    common = folder / "shared"
    common.mkdir()
    return open_git(folder / "a", common=common), open_git(folder / "b", common=common)


class TestMirrorsOfTwoHosts(WorkspaceCompliance):
    """Every step is another host's than the one before."""

    @pytest.fixture
    def ports(self, tmp_path: Path) -> GitPorts:
        a, b = hosts(tmp_path)
        return GitPorts(
            mirrors=a.mirrors, sources=b.sources, workspaces=b.workspaces, merges=a.merges, landing=a.landing
        )


async def test_of_writers_on_two_hosts_one_moves_the_head_and_the_other_is_told(tmp_path: Path) -> None:
    a, b = hosts(tmp_path)
    user = UserRepository(tmp_path / "user")
    base = await a.mirrors.fetch_base(user.project(), build="b1")
    first = (await a.workspaces.commit(request(base, operation("create", "one", "1")))).commit
    second = (await b.workspaces.commit(request(base, operation("create", "two", "2")))).commit
    moves = [each.mirrors.advance("shop", build="b1", old=base, new=new) for each, new in ((a, first), (b, second))]
    told = await asyncio.gather(*moves, return_exceptions=True)
    assert [type(each) for each in told if each is not None] == [Overtaken]
    head = await b.mirrors.head("shop", build="b1")
    assert head == await a.mirrors.head("shop", build="b1")
    assert head in (first, second)


def test_a_host_keeps_its_checkouts_to_itself(tmp_path: Path) -> None:
    hosts(tmp_path)
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"work"}
    assert {path.name for path in (tmp_path / "shared").iterdir()} == {"mirrors"}


def test_a_shared_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ResourceShort, match=r"the shared folder .*/none is not there: is it mounted\?"):
        open_git(tmp_path / "a", common=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_without_a_shared_folder_all_is_in_the_state_folder(tmp_path: Path) -> None:
    (tmp_path / "mendwork.toml").write_text("")
    alone = load_settings(start=tmp_path, environment={})
    assert alone.common == alone.state
    shared = load_settings(start=tmp_path, environment={"MENDWORK_SHARED": "/mnt/mendwork"})
    assert (shared.common, shared.state) == (Path("/mnt/mendwork"), alone.state)
