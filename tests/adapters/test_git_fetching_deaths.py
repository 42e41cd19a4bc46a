"""A fetch of the base that is killed at any of its gits, or that another try overtakes."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository
from adapters.git import mirrors
from adapters.git.adapter import GitPorts
from adapters.git.mirror import build_ref
from adapters.git.objects.transfer import fetch
from tests.adapters.git_forwarding import fetch_to_its_death
from tests.adapters.processes import pipe, start
from tests.adapters.test_git_fetching import ports, user

__all__ = ["ports", "user"]  # fixtures

BUILD = "b1"


def refs_of(state: Path) -> list[str]:
    """Of every build, what the mirror keeps."""
    folder = state / "mirrors" / "shop.git" / "refs" / "mendwork" / "builds"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["before", "during", "together"])
async def test_a_fetch_that_is_killed_at_any_git_leaves_nothing_beside_base_and_head(
    ports: GitPorts, user: UserRepository, tmp_path: Path, how: str
) -> None:
    deaths, head, state = 0, user.git("rev-parse", "HEAD"), tmp_path / "state"
    while True:
        build = f"b{deaths + 1}"
        receiver, sender = pipe()
        process = start(fetch_to_its_death, sender, deaths + 1, how, str(state), str(user.path), build)
        process.join(60)
        if receiver.poll():
            assert (receiver.recv(), process.exitcode) == (head, 0)
            break
        assert process.exitcode == -signal.SIGKILL
        deaths += 1
        assert await ports.mirrors.fetch_base(user.project(), build=build) == head
    assert deaths >= 5
    expected = [f"b{number + 1}/{name}" for number in range(deaths + 1) for name in ("base", "head")]
    assert refs_of(state) == sorted(expected)


async def test_what_every_killed_try_brought_goes_once_one_has_pinned_the_base(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base, state = await ports.mirrors.fetch_base(user.project(), build=BUILD), tmp_path / "state"
    left = state / "mirrors" / "shop.git" / build_ref(BUILD, mirrors.ARRIVING)
    left.mkdir()
    for number in range(3):
        (left / f"0000000{number}").write_text(f"{base}\n")
    assert await ports.mirrors.fetch_base(user.project(), build=BUILD) == base
    assert refs_of(state) == [f"{BUILD}/base", f"{BUILD}/head"]


async def test_a_try_whose_arrival_another_swept_has_the_base_that_the_other_pinned(
    ports: GitPorts, user: UserRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(*words: object, to: str) -> str:
        commit = await fetch(*words, to=to)  # type: ignore[arg-type]
        if not there.is_set():
            there.set()
            await go_on.wait()
        return commit

    monkeypatch.setattr(mirrors, "fetch", slowly)
    slow = asyncio.create_task(ports.mirrors.fetch_base(user.project(), build=BUILD))
    await there.wait()
    base = await ports.mirrors.fetch_base(user.project(), build=BUILD)
    user.commit({"later": b"1"})
    go_on.set()
    assert await slow == base
    assert refs_of(tmp_path / "state") == [f"{BUILD}/base", f"{BUILD}/head"]
