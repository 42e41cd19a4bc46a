"""What killed workers leave is found at the next start, and only that of the same state folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapters.git.folders import remove_tree
from adapters.house.folders import StateFolders, weight
from adapters.house.leftovers import Found, Leftovers, mount_points
from adapters.house.logs import KEPT_BYTES, MOST_BYTES
from adapters.house.presence import dead, living, present
from adapters.sandbox.cgroup_folder import Limits
from adapters.sandbox.cgroups import ControlGroups
from domain.errors import InvalidInput

WORKER = """
import sys, subprocess, time
from pathlib import Path
from adapters.house.presence import present
from adapters.sandbox.cgroup_folder import Limits
from adapters.sandbox.cgroups import ControlGroups
state = Path(sys.argv[1])
with present(state, "sandbox", entering=lambda: None):
    work = state / "work" / "checkout-1"
    work.mkdir(parents=True)
    (work / "file").write_text("x")
    child = subprocess.Popen(["sleep", "600"], cwd=work, start_new_session=True, stdin=subprocess.DEVNULL)
    if "group" in sys.argv:
        group = ControlGroups().create(f"{state}/run", limits=Limits(memory=50_000_000, processes=8))
        for entrance in group.entrances():
            entrance.write_text(str(child.pid))
    print(child.pid, flush=True)
    time.sleep(600)
"""


class Killed:
    """A worker that made a checkout and a process in it, and was killed then."""

    def __init__(self, state: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(state), *words],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout
        self.child = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def child_lives(self) -> bool:
        """A zombie whose new parent has not looked yet is dead."""
        try:
            return Path("/proc", str(self.child), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False


Kill = Callable[..., Killed]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Kill]:
    made: list[Killed] = []

    def make(state: Path, *words: str) -> Killed:
        state.mkdir(parents=True, exist_ok=True)
        made.append(Killed(state, *words))
        return made[-1]

    yield make
    for each in made:
        each.close()
        if each.child_lives():
            os.kill(each.child, 9)


def leftovers(state: Path) -> Leftovers:
    return Leftovers(state, groups=ControlGroups(), remove=remove_tree)


def test_what_a_killed_worker_left_is_ended_and_said_in_a_line(worker: Kill, tmp_path: Path) -> None:
    killed = worker(tmp_path)
    killed.kill()
    assert [each.pid for each in dead(tmp_path)] == [killed.process.pid]
    said: list[str] = []
    found = leftovers(tmp_path).end(say=said.append)
    assert found == Found(processes=1, folders=1)
    assert said == ["ended what killed workers had left: 1 process, 1 folder"]
    assert not killed.child_lives()
    assert list((tmp_path / "work").iterdir()) == []
    assert dead(tmp_path) == []
    assert leftovers(tmp_path).end(say=said.append) == Found()
    assert len(said) == 1, "nothing left, nothing said"


def test_a_control_group_of_a_killed_worker_is_emptied_and_removed(worker: Kill, tmp_path: Path) -> None:
    if ControlGroups().missing():
        pytest.fail("this machine has no control groups; the run of the tests needs them")
    killed = worker(tmp_path, "group")
    killed.kill()
    found = leftovers(tmp_path).end()
    assert found.groups == 1
    assert not killed.child_lives()


def test_what_belongs_to_another_state_folder_is_never_touched(worker: Kill, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    mine, other, living_one = worker(ours, "group"), worker(theirs, "group"), worker(tmp_path / "third", "group")
    mine.kill()
    other.kill()
    assert leftovers(ours).end().groups == 1
    assert (mine.child_lives(), other.child_lives(), living_one.child_lives()) == (False, True, True)
    assert (theirs / "work" / "checkout-1" / "file").exists()
    assert [each.pid for each in dead(theirs)] == [other.process.pid]
    assert leftovers(theirs).end().groups == 1
    assert (other.child_lives(), living_one.child_lives()) == (False, True)


def test_beside_a_living_worker_of_the_same_folder_only_what_the_dead_left_goes(worker: Kill, tmp_path: Path) -> None:
    alive = worker(tmp_path)
    assert leftovers(tmp_path).end() == Found()
    assert alive.child_lives()
    assert (tmp_path / "work" / "checkout-1" / "file").exists()
    assert living(tmp_path) == {alive.process.pid}


def test_a_worker_that_ended_in_order_leaves_no_trace(tmp_path: Path) -> None:
    with present(tmp_path, "sandbox", entering=lambda: None):
        assert living(tmp_path) == {os.getpid()}
    assert (living(tmp_path), dead(tmp_path)) == (set(), [])


def test_nobody_enters_while_another_one_clears(tmp_path: Path) -> None:
    """Else it would make a folder that the other one takes for left over."""
    inside, go_on, second = threading.Event(), threading.Event(), threading.Event()

    def clear() -> None:
        inside.set()
        assert go_on.wait(30)

    def enter(name: str, entering: Callable[[], object]) -> None:
        with present(tmp_path, name, entering=entering):
            """Nothing to do."""

    threads = [threading.Thread(target=enter, args=("workspace", clear))]
    threads[0].start()
    assert inside.wait(30)
    threads.append(threading.Thread(target=enter, args=("sandbox", second.set)))
    threads[1].start()
    assert not second.wait(0.2)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert second.is_set()


PERSON = """
import os, pty, sys, time
pid, _ = pty.fork()
if pid == 0:
    os.chdir(sys.argv[1])
    time.sleep(600)
print(pid, flush=True)
time.sleep(600)
"""


def test_a_process_of_a_person_who_looks_into_the_folder_lives_on(tmp_path: Path) -> None:
    """It has a terminal."""
    work = tmp_path / "work"
    work.mkdir()
    argv = [sys.executable, "-c", PERSON, str(work)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as terminal:
        assert terminal.stdout
        person = Path("/proc", terminal.stdout.readline().strip())
        try:
            wait_for(lambda: Path(os.readlink(person / "cwd")) == work)
            assert leftovers(tmp_path).end().processes == 0
            assert "Z" not in (person / "stat").read_text().rpartition(")")[2].split()[0]
        finally:
            os.killpg(terminal.pid, signal.SIGKILL)
            os.kill(int(person.name), signal.SIGKILL)  # a terminal of its own is a session of its own


def wait_for(what: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not what():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)


def test_a_number_that_is_another_process_by_now_is_left_alone(tmp_path: Path) -> None:
    """A dead worker's number was given again: its control groups may be the new one's."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / f"sandbox-{os.getpid()}").touch()
    group = ControlGroups().create(f"{tmp_path}/run", limits=Limits(memory=50_000_000, processes=8))
    try:
        assert leftovers(tmp_path).end().groups == 0
        assert all(folder.is_dir() for folder in group.folders.values())
    finally:
        group.remove()


MOUNTS = [
    "36 35 98:0 / /state/work/run-1/env rw,noatime master:1 - ext4 /dev/root rw",
    "37 35 98:0 / /state/work/with\\040blank rw - tmpfs tmpfs rw",
    "38 35 98:0 / /state/workshop rw - tmpfs tmpfs rw",
    "39 35 98:0 / / rw - ext4 /dev/root rw",
]


def test_only_mounts_inside_the_folder_are_ours() -> None:
    found = mount_points(MOUNTS, below=Path("/state/work"))
    assert found == [Path("/state/work/run-1/env"), Path("/state/work/with blank")]


MOUNTING = """
import subprocess, sys
from pathlib import Path
from adapters.git.folders import remove_tree
from adapters.house.leftovers import Leftovers
from adapters.sandbox.cgroups import ControlGroups
state = Path(sys.argv[1])
place = state / "work" / "run"
place.mkdir(parents=True)
subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
print(Leftovers(state, groups=ControlGroups(), remove=remove_tree).end())
assert str(place) not in Path("/proc/self/mountinfo").read_text()
"""


def test_a_mount_that_was_left_is_taken_off_before_its_folder_goes(tmp_path: Path) -> None:
    argv = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", MOUNTING, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mounts=1, folders=1" in done.stdout


class TestFolders:
    def _old(self, path: Path, days: float) -> Path:
        path.mkdir(parents=True)
        (path / "file").write_bytes(b"x" * 10_000)
        at = time.time() - days * 86_400
        os.utime(path, (at, at))
        return path

    def test_what_is_old_goes_from_work_and_from_nowhere_else(self, tmp_path: Path) -> None:
        old, young = self._old(tmp_path / "work" / "old", 2), self._old(tmp_path / "work" / "young", 0.5)
        elsewhere = self._old(tmp_path / "mirrors" / "shop.git", 20)
        folders = StateFolders(tmp_path, remove=remove_tree)
        before = int((time.time() - 86_400) * 1000)
        would = folders.abandoned(before=before, remove=False)
        assert (would.count, old.exists()) == (1, True)
        assert would.bytes >= 10_000
        assert folders.abandoned(before=before, remove=True) == would
        assert (old.exists(), young.exists(), elsewhere.exists()) == (False, True, True)

    def test_what_a_replay_left_goes_as_well(self, tmp_path: Path) -> None:
        old, kept, young = (self._old(tmp_path / "replay" / f"{days}", days) for days in (2, 3, 0.5))
        (kept / "kept").touch()
        os.utime(kept, (0, 0))
        before = int((time.time() - 86_400) * 1000)
        assert StateFolders(tmp_path, remove=remove_tree).abandoned(before=before, remove=True).count == 1
        assert (old.exists(), kept.exists(), young.exists()) == (False, True, True)

    def test_a_long_log_is_cut_to_its_last_lines_while_its_process_goes_on_writing(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        (logs / "short.log").write_bytes(b"short\n")
        with (logs / "worker.log").open("ab", buffering=0) as log:
            log.write(b"".join(b"%09d\n" % number for number in range(MOST_BYTES // 10 + 2)))
            folders = StateFolders(tmp_path, remove=remove_tree)
            would = folders.abandoned(before=0, remove=False)
            assert (would.count, (logs / "worker.log").stat().st_size > MOST_BYTES) == (1, True)
            assert folders.abandoned(before=0, remove=True) == would
            log.write(b"after\n")
        assert (logs / "worker.log").read_bytes() == b"after\n"
        kept = (logs / "worker.log.1").read_bytes().splitlines()
        assert {len(line) for line in kept} == {9}, "whole lines"
        assert int(kept[-1]) == MOST_BYTES // 10 + 1
        assert KEPT_BYTES - 20 < len(kept) * 10 <= KEPT_BYTES
        assert (logs / "short.log").read_bytes() == b"short\n"

    def test_a_log_that_is_a_link_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_bytes(b"x" * (MOST_BYTES + 1))
        (tmp_path / "state" / "logs").mkdir(parents=True)
        (tmp_path / "state" / "logs" / "a.log").symlink_to(tmp_path / "precious")
        assert StateFolders(tmp_path / "state", remove=remove_tree).abandoned(before=0, remove=True).count == 0
        assert (tmp_path / "precious").stat().st_size == MOST_BYTES + 1

    def test_a_link_is_removed_and_never_followed(self, tmp_path: Path) -> None:
        outside = self._old(tmp_path / "outside", 3)
        (tmp_path / "state" / "work").mkdir(parents=True)
        (tmp_path / "state" / "work" / "link").symlink_to(outside)
        StateFolders(tmp_path / "state", remove=remove_tree).abandoned(before=2**60, remove=True)
        assert not (tmp_path / "state" / "work" / "link").is_symlink()
        assert (outside / "file").exists()

    def test_a_state_folder_that_is_not_there_yet_is_empty(self, tmp_path: Path) -> None:
        folders = StateFolders(tmp_path / "none", remove=remove_tree)
        assert folders.abandoned(before=2**60, remove=True).count == 0
        assert set(folders.sizes().values()) == {0}

    def test_sizes_are_by_kind_and_hard_links_count_once(self, tmp_path: Path) -> None:
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs" / "a").write_bytes(b"x" * 100_000)
        os.link(tmp_path / "blobs" / "a", tmp_path / "blobs" / "b")
        (tmp_path / "mendwork.db-wal").write_bytes(b"x" * 50_000)
        (tmp_path / "notes").write_bytes(b"x" * 20_000)
        sizes = StateFolders(tmp_path, remove=remove_tree).sizes()
        assert 100_000 <= sizes["blobs"] < 200_000
        assert 50_000 <= sizes["store"] < 100_000
        assert 20_000 <= sizes["rest"] < 50_000
        assert weight(tmp_path / "gone") == 0


def test_the_same_number_of_another_container_is_refused_and_not_waited_for_nor_taken_away(tmp_path: Path) -> None:
    with present(tmp_path, "sandbox", entering=lambda: None):
        with pytest.raises(InvalidInput, match="each container needs a state folder of its own"), ExitStack() as stack:
            stack.enter_context(present(tmp_path, "sandbox", entering=lambda: None))
        assert living(tmp_path) == {os.getpid()}
    assert (living(tmp_path), dead(tmp_path)) == (set(), [])


def test_a_process_that_cannot_clear_does_not_enter(tmp_path: Path) -> None:
    def fails() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"), ExitStack() as stack:
        stack.enter_context(present(tmp_path, "sandbox", entering=fails))
    assert (living(tmp_path), dead(tmp_path)) == (set(), [])
