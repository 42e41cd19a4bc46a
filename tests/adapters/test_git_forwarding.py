"""Fast-forwarding the target branch: one ref by compare-and-set, never where somebody works, never by force."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.mirror import Mirror
from adapters.git.objects.transfer import send
from adapters.git.origin import open_origin
from domain.errors import InvalidInput, Overtaken, RepositoryRefused
from tests.adapters.test_git_landing import arm

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    """Somebody works on the branch "side"; "main" is free to move."""
    user = UserRepository(tmp_path / "user")
    user.git("checkout", "--quiet", "-b", "side")
    return user


async def made(ports: GitPorts, user: UserRepository, *, name: str = "new.txt") -> tuple[str, str]:
    """The base of build b1 and a commit on top of it."""
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    change = request(base, operation("create", name, "new"), operation("delete", "README"))
    return base, (await ports.workspaces.commit(change)).commit


def everything(user: UserRepository, *besides: str) -> dict[str, bytes]:
    """Every file of the repository and its working tree, but for objects and ``besides``."""
    found = {}
    for path in user.path.rglob("*"):
        name = str(path.relative_to(user.path))
        if path.is_file() and not name.startswith((".git/objects/", *besides)):
            found[name] = path.read_bytes() + str(path.stat().st_mtime_ns).encode()
    return found


@pytest.mark.parametrize("packed", [False, True])
async def test_nothing_but_the_branch_changes(ports: GitPorts, user: UserRepository, packed: bool) -> None:
    user.git("branch", "other")
    user.git("tag", "v1")
    if packed:
        user.git("pack-refs", "--all")
    (user.path / "app.py").write_text("dirty\n")
    (user.path / "staged").write_text("staged\n")
    user.git("add", "staged")
    (user.path / "untracked").write_text("x")
    base, new = await made(ports, user)
    status, refs = user.git("--no-optional-locks", "status", "--porcelain=v2", "--branch"), user.refs()
    before = everything(user, ".git/refs/heads/main", ".git/logs/refs/heads/main")
    await ports.landing.forward(user.project(), old=base, new=new)
    assert everything(user, ".git/refs/heads/main", ".git/logs/refs/heads/main") == before
    assert user.refs() == refs | {"refs/heads/main": new}
    assert user.git("--no-optional-locks", "status", "--porcelain=v2", "--branch") == status
    assert user.git("show", "main:new.txt") == "new"
    user.git("fsck", "--full", "--strict")
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    assert everything(user, ".git/refs/heads/main", ".git/logs/refs/heads/main") == before
    assert user.refs() == refs


async def test_a_reflog_that_is_kept_says_who_moved_the_branch(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    await ports.landing.forward(user.project(), old=base, new=new)
    assert user.git("log", "--walk-reflogs", "-1", "--format=%H %gn %gs", "main") == f"{new} Mendwork mendwork"
    assert user.git("rev-parse", "main@{1}") == base


async def test_a_reflog_that_is_not_kept_stays_so(ports: GitPorts, user: UserRepository) -> None:
    log = user.path / ".git" / "logs" / "refs" / "heads" / "main"
    log.unlink()
    base, new = await made(ports, user)
    await ports.landing.forward(user.project(), old=base, new=new)
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    assert not log.exists()


@pytest.mark.parametrize("place", [".git/hooks", "elsewhere"])
async def test_no_hook_runs(ports: GitPorts, user: UserRepository, tmp_path: Path, place: str) -> None:
    base, new = await made(ports, user)
    marker = tmp_path / "ran"
    arm(user, user.path / place, marker)
    await ports.landing.forward(user.project(), old=base, new=new)
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    assert not marker.exists()


async def test_a_result_that_landed_is_not_sent_again(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=new)
    objects = sorted((user.path / ".git" / "objects").rglob("*"))
    await ports.landing.forward(user.project(), old=base, new=new)
    assert sorted((user.path / ".git" / "objects").rglob("*")) == objects
    assert user.refs()["refs/heads/main"] == user.refs()["refs/heads/mendwork/b1"] == new


async def test_a_linked_working_tree_is_respected(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    base, new = await made(ports, user)
    user.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    for _ in range(2):
        with pytest.raises(RepositoryRefused, match=rf"checked out in {tmp_path}/linked, .*'git merge --ff-only {new}"):
            await ports.landing.forward(user.project(), old=base, new=new)
        if (tmp_path / "linked").exists():
            (tmp_path / "linked").rename(tmp_path / "moved away")
    user.git("worktree", "prune")
    await ports.landing.forward(user.project(), old=base, new=new)


async def test_a_bare_repository_moves_but_for_its_linked_trees(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    user.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    user.path = tmp_path / "bare.git"
    user.git("symbolic-ref", "HEAD", "refs/heads/main")
    base, new = await made(ports, user)
    await ports.landing.forward(user.project(), old=base, new=new)
    assert user.git("rev-parse", "HEAD") == new
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    user.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    with pytest.raises(RepositoryRefused, match="checked out"):
        await ports.landing.forward(user.project(), old=base, new=new)


async def test_a_bare_repository_with_a_working_tree_elsewhere_is_not_moved_under_it(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    user.git("clone", "--quiet", "--bare", ".", str(tmp_path / "dots.git"))
    user.path = tmp_path / "dots.git"
    user.git("symbolic-ref", "HEAD", "refs/heads/main")
    (tmp_path / "home").mkdir()
    user.git("--work-tree", str(tmp_path / "home"), "checkout", "--quiet", "main")
    base, new = await made(ports, user)
    with pytest.raises(RepositoryRefused, match="has an index"):
        await ports.landing.forward(user.project(), old=base, new=new)


async def test_an_unfinished_rebase_or_bisection_holds_its_branch(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base, new = await made(ports, user)
    user.git("checkout", "--quiet", "main")
    user.git("-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "--root")
    with pytest.raises(RepositoryRefused, match="waiting for the end of a rebase"):
        await ports.landing.forward(user.project(), old=base, new=new)
    user.git("rebase", "--abort")
    user.git("worktree", "add", "--quiet", "--force", str(tmp_path / "linked"), "main")
    user.git("-C", str(tmp_path / "linked"), "bisect", "start")
    user.git("-C", str(tmp_path / "linked"), "checkout", "--quiet", "--detach")
    user.git("checkout", "--quiet", "side")
    with pytest.raises(RepositoryRefused, match="waiting for the end of a bisection"):
        await ports.landing.forward(user.project(), old=base, new=new)
    user.git("-C", str(tmp_path / "linked"), "bisect", "reset", "side~0")
    await ports.landing.forward(user.project(), old=base, new=new)


async def test_a_branch_that_stands_for_another_moves_that_one(ports: GitPorts, user: UserRepository) -> None:
    user.git("branch", "-m", "main", "trunk")
    user.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    base, new = await made(ports, user)
    user.git("checkout", "--quiet", "trunk")
    with pytest.raises(RepositoryRefused, match="checked out"):
        await ports.landing.forward(user.project(), old=base, new=new)
    user.git("checkout", "--quiet", "side")
    await ports.landing.forward(user.project(), old=base, new=new)
    assert user.git("symbolic-ref", "refs/heads/main") == "refs/heads/trunk"
    assert user.refs()["refs/heads/trunk"] == new
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    assert user.refs()["refs/heads/trunk"] == base
    user.git("update-ref", "refs/elsewhere", base)
    user.git("symbolic-ref", "refs/heads/main", "refs/elsewhere")
    with pytest.raises(RepositoryRefused, match="no branch"):
        await ports.landing.forward(user.project(), old=base, new=new)


async def test_the_lock_of_a_user_is_waited_for(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    lock = user.path / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(Overtaken, match="another git process"):
        await ports.landing.forward(user.project(), old=base, new=new)
    assert lock.exists()
    lock.unlink()
    await ports.landing.forward(user.project(), old=base, new=new)


async def test_a_forward_that_was_cut_between_objects_and_branch_is_repeated(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base, new = await made(ports, user)
    mirror = Mirror(folder=tmp_path / "state" / "mirrors", project="shop")
    await send(await open_origin(user.project(), mirror.git.home), mirror, new, by=tmp_path)
    assert user.refs()["refs/heads/main"] == base
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    await ports.landing.forward(user.project(), old=base, new=new)
    assert user.refs()["refs/heads/main"] == new


async def test_a_branch_that_is_gone_is_said_and_has_nothing_to_rewind(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    user.git("branch", "-D", "main")
    with pytest.raises(RepositoryRefused, match="no branch 'main'"):
        await ports.landing.forward(user.project(), old=base, new=new)
    assert await ports.landing.rewind(user.project(), old=base, new=new)
    assert "refs/heads/main" not in user.refs()


async def test_names_that_are_no_commits_are_refused(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    for name in ("", "main", "--all", new[:12], f"{new}^"):
        with pytest.raises(InvalidInput):
            await ports.landing.forward(user.project(), old=base, new=name)
        with pytest.raises(InvalidInput):
            await ports.landing.forward(user.project(), old=name, new=new)
        with pytest.raises(InvalidInput):
            await ports.landing.rewind(user.project(), old=name, new=new)
        with pytest.raises(InvalidInput):
            await ports.landing.rewind(user.project(), old=base, new=name)
    assert user.refs()["refs/heads/main"] == base


async def test_odd_branch_names_are_moved_taken_and_fetched(ports: GitPorts, user: UserRepository) -> None:
    base, new = await made(ports, user)
    for name in ("feature/größe", "it's;odd&$(touch)", "-dash", "--force"):
        user.git("update-ref", f"refs/heads/{name}", base)
        project = user.project(branch=name)
        assert await ports.merges.target(project, build="b1") == base
        await ports.landing.forward(project, old=base, new=new)
        assert (await ports.merges.take(project, build="b1", onto=base, name=name)).commit == new
        assert user.refs()[f"refs/heads/{name}"] == new
        assert await ports.landing.rewind(project, old=base, new=new)
    assert set(user.refs().values()) == {base}
