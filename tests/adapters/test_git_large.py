"""A repository of five thousand files: no step starts a process per file, and each takes seconds at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.run import Call, Git, Result
from tests.adapters.odd_files import raw, tree_of

FILES = 5_000
SECONDS = 30.0
"""Far above what it takes, also on a busy machine; a process for each file would take longer."""


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    """Made by one git: its working tree is empty."""
    user = UserRepository(tmp_path / "user", commit=False)
    head = "commit refs/heads/main\ncommitter U <u@h> 1700000000 +0000\ndata 5\nstart\n"
    files = []
    for number in range(FILES):
        text = f"value = {number}\n" * 20
        files.append(f"M 100644 inline part{number // 500}/file{number}.py\ndata {len(text)}\n{text}\n")
    raw(user.path, "fast-import", "--quiet", stdin=(head + "".join(files)).encode())
    return user


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every git that the adapter starts, by its first word."""
    words: list[str] = []
    original = Git.outcome

    async def outcome(self: Git, *arguments: str, call: Call = Call()) -> Result:  # noqa: B008  frozen, as the default
        words.append(arguments[0])
        return await original(self, *arguments, call=call)

    monkeypatch.setattr(Git, "outcome", outcome)
    return words


@pytest.mark.timeout(4 * SECONDS)
async def test_every_step_is_a_few_processes_whatever_the_number_of_files(
    ports: GitPorts, user: UserRepository, started: list[str]
) -> None:
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    assert len(started) <= 8
    del started[:]
    assert len(await ports.sources.files("shop", base)) == FILES
    assert started == ["ls-tree"]
    del started[:]
    made = await ports.workspaces.commit(
        request(base, *(operation("edit", f"part{n}/file{500 * n}.py", "", _edit(500 * n)) for n in range(5)))
    )
    assert len(started) <= 9
    del started[:]
    async with ports.workspaces.checkout("shop", made.commit, label="x") as folder:
        assert sum(1 for path in folder.rglob("*.py")) == FILES
    assert started == ["read-tree", "checkout-index"]
    before = tree_of(user.path, "main")
    await ports.landing.land(user.project(), build="b1", commit=made.commit)
    after = tree_of(user.path, "mendwork/b1")
    assert sum(1 for path, entry in after.items() if before[path] != entry) == 5


def _edit(number: int) -> tuple[str, str]:
    """Replaces all of the file's lines but the first by one."""
    line = f"value = {number}\n"
    return line * 20, f"{line}changed = True\n"
