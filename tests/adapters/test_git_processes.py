"""Every git ends, in time or when its caller is cancelled, and what it says becomes one clear error."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts, open_git
from adapters.git.failures import first_line, refusal, system_refusal
from adapters.git.mirror import Mirror
from adapters.git.run import Call, Git
from domain.errors import MendworkError, Overtaken, RepositoryRefused, ResourceShort, TooLarge


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


@pytest.fixture
def git(ports: GitPorts, user: UserRepository, tmp_path: Path) -> Git:
    return Git(directory=user.path / ".git", home=tmp_path / "state" / "mirrors" / ".home")


def running(marker: str) -> list[int]:
    """Processes with ``marker`` on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in words and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


async def until_running(marker: str) -> None:
    while not running(marker):  # noqa: ASYNC110  /proc has no event to wait for
        await asyncio.sleep(0.01)


async def hanging(git: Git, tmp_path: Path, call: Call) -> None:
    """A git with a child, which both would wait for ever; its command line names ``tmp_path``."""
    fifo = tmp_path / "never"
    if not fifo.exists():
        os.mkfifo(fifo)
    await git.outcome("-c", f"alias.hang=!cat {fifo}", "hang", call=call)


async def test_a_git_that_takes_too_long_is_ended_with_its_children(git: Git, tmp_path: Path) -> None:
    with pytest.raises(ResourceShort, match="took more than"):
        await hanging(git, tmp_path, Call(seconds=0.3))
    assert running(str(tmp_path / "never")) == []


async def test_a_cancelled_call_ends_its_git_and_its_children(git: Git, tmp_path: Path) -> None:
    task = asyncio.create_task(hanging(git, tmp_path, Call(stdin=b"x" * 1_000_000)))
    await until_running(f"cat {tmp_path}/never")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(str(tmp_path / "never")) == []


async def test_a_call_that_is_cancelled_while_it_starts_leaves_nothing(git: Git, tmp_path: Path) -> None:
    for turns in range(20):
        task = asyncio.create_task(hanging(git, tmp_path, Call()))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert running(str(tmp_path / "never")) == []


async def test_output_over_the_limit_is_cut_and_said(git: Git, user: UserRepository) -> None:
    name = user.git("hash-object", "-w", str(_big(user.path)))
    call = Call(limit=1000)
    result = await git.outcome("cat-file", "blob", name, call=call)
    assert (result.cut, len(result.stdout)) == (True, 1000)
    with pytest.raises(TooLarge, match="more than 1000 bytes"):
        await git.run("cat-file", "blob", name, doing="read it", call=call)


def _big(folder: Path) -> Path:
    (folder / "big").write_bytes(b"x" * 10_000_000)
    return folder / "big"


async def test_input_that_git_does_not_read_is_no_error_of_ours(git: Git) -> None:
    with pytest.raises(RepositoryRefused, match="could not try"):
        await git.run("cat-file", "--nonsense", doing="try", call=Call(stdin=b"x" * 1_000_000))


async def test_git_sees_an_environment_of_ours_alone(git: Git) -> None:
    shown = (await git.run("-c", "alias.env=!env", "env", doing="look")).decode()
    names = {line.partition("=")[0] for line in shown.splitlines()}
    assert not names & {"SSH_AUTH_SOCK", "EDITOR", "PYTEST_CURRENT_TEST", "GIT_INDEX_FILE", "VIRTUAL_ENV"}
    config = (await git.run("config", "--show-scope", "--list", doing="look")).decode()
    assert {line.split("\t")[0] for line in config.splitlines()} == {"global", "local", "command"}


async def test_a_diff_over_two_megabytes_says_that_it_is_cut(ports: GitPorts, user: UserRepository) -> None:
    old = await ports.mirrors.fetch_base(user.project(), build="b1")
    user.commit({"big": b"line of text\n" * 300_000})
    new = await ports.mirrors.fetch_base(user.project(), build="b2")
    text = await ports.sources.diff("shop", old, new)
    assert text.endswith("\n+line of text\n[the diff is cut here: it is over 2000000 bytes]\n")
    assert 1_900_000 < len(text) < 2_000_100


async def test_the_lock_of_a_killed_worker_lasts_as_long_as_its_git(git: Git, tmp_path: Path) -> None:
    mirror = Mirror(folder=tmp_path / "state" / "mirrors", project="shop")
    async with mirror.lock("fetch") as held:
        stranded = asyncio.create_task(hanging(git, tmp_path, Call(keep=(held,))))
        await until_running(f"cat {tmp_path}/never")
    order = []

    async def take() -> None:
        async with mirror.lock("fetch"):
            order.append("taken")

    task = asyncio.create_task(take())
    done, _ = await asyncio.wait((task,), timeout=0.2)
    assert not done
    order.append("ended")
    stranded.cancel()
    await asyncio.wait((stranded, task))
    assert order == ["ended", "taken"]


@pytest.mark.parametrize(("losses", "ends"), [(2, b"written\n"), (9, b"")])
async def test_a_race_that_pruning_won_is_run_again(git: Git, tmp_path: Path, losses: int, ends: bytes) -> None:
    lost = "echo x >> tries; echo 'fatal: unable to create temporary file: No such file or directory' >&2; exit 128"
    (tmp_path / "git.sh").write_text(
        f"cd {tmp_path}; touch tries; [ $(wc -l < tries) -ge {losses} ] || {{ {lost}; }}\ncat\n"
    )
    words = ("-c", f"alias.again=!sh {tmp_path / 'git.sh'}", "again")
    call = Call(stdin=b"written\n")
    if ends:
        assert await git.run(*words, doing="write", call=call) == ends
    else:
        with pytest.raises(Overtaken, match="while the repository was tidied up"):
            await git.run(*words, doing="write", call=call)


def test_the_sentence_is_gits_own_without_decoration() -> None:
    noise = b"warning: x\n\x1b[31mfatal: \x1b]0;title\x07no\trespite\x1b[0m\nTraceback\n"
    assert first_line(noise) == "no respite"
    assert first_line(b"") == "git gave no reason"
    assert first_line(b"hint\n") == "hint"
    assert len(first_line(b"fatal: " + b"x" * 5000)) == 300


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (b"fatal: write error: No space left on device", ResourceShort),
        (b"error: x\nfatal: unable to write: Disk quota exceeded", ResourceShort),
        (b"fatal: Unable to create '/x/shallow.lock': File exists.\n\nAnother git process", Overtaken),
        (b"error: unable to create temporary file: No such file or directory\nfatal: failed to write", Overtaken),
        (b"fatal: not a git repository", RepositoryRefused),
    ],
)
def test_errors_are_classified_by_who_can_act(stderr: bytes, kind: type[MendworkError]) -> None:
    assert type(refusal(stderr, doing="do it")) is kind


def test_a_full_disk_of_ours_is_a_resource() -> None:
    assert type(system_refusal(OSError(28, "No space left on device"), doing="x")) is ResourceShort
    assert type(system_refusal(PermissionError(13, "Permission denied"), doing="x")) is RepositoryRefused


@given(st.binary(max_size=500))
def test_any_stderr_becomes_one_short_printable_line(stderr: bytes) -> None:
    line = first_line(stderr)
    assert line
    assert len(line) <= 300
    assert line.isprintable()
