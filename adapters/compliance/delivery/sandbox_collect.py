"""What is taken out of a sandbox: one folder, when everything else in it is dead. Subclass as the others."""

from __future__ import annotations

import asyncio
import tarfile
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.compliance.sandbox import MEGABYTE, PYTHON, Bench, Benched, Outcome, until
from domain.errors import InvalidInput, TooLarge
from domain.ports.sandbox import Collect

# Leaves a process behind that tells when it sees the one that reads what was left.
_WATCHER = """
import glob
up, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    print("watching", flush=True)
    os.write(tell, b"!")
    while True:
        for name in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                line = open(name, "rb").read()
                # Where processes are not apart, others' tars are in sight: theirs read another folder.
                if line.startswith(b"tar\\0") and b"%s" in line:
                    print("seen", flush=True)
            except OSError:
                pass
os.read(up, 1)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """A bench whose runs leave something in a folder."""

    bench: Bench
    into: Path

    async def run(self, script: str, *, folder: str = "out", most_bytes: int = MEGABYTE) -> Outcome:
        """Run a shell script."""
        collect = Collect(folder=folder, into=self.into, most_bytes=most_bytes)
        return await self.bench.run("sh", "-c", script, self.bench.mark, collect=collect)

    def taken(self) -> dict[str, str]:
        """What the tar holds: name to content, to "→ target", to "/" for folders."""
        with tarfile.open(self.into) as tar:
            return {member.name: _shown(tar, member) for member in tar if member.name != "."}


def _shown(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    if member.issym():
        return f"→ {member.linkname}"
    content = tar.extractfile(member) if member.isreg() else None
    return content.read().decode() if content else "/"


class CollectCompliance(Benched):
    """One folder is taken out whole, or nothing is."""

    @pytest.fixture
    def taking(self, bench: Bench, tmp_path: Path) -> Taking:
        return Taking(bench=bench, into=tmp_path / "taken.tar")

    async def test_a_folder_is_taken_out_as_it_was_left(self, taking: Taking) -> None:
        outcome = await taking.run("mkdir -p out/sub; echo one > out/a; echo two > out/sub/b; ln -s a out/l; echo done")
        assert (outcome.result.collected, outcome.result.exit_code, outcome.log) == (True, 0, "done\n"), outcome.log
        assert taking.taken() == {"./a": "one\n", "./sub": "/", "./sub/b": "two\n", "./l": "→ a"}

    async def test_all_of_the_working_directory_can_be_taken(self, taking: Taking) -> None:
        assert (await taking.run("echo new > made.txt", folder=".")).result.collected
        assert taking.taken() == {"./kept.txt": "as it was", "./made.txt": "new\n"}

    async def test_hard_links_are_files_of_their_own(self, taking: Taking) -> None:
        await taking.run("mkdir out; echo one > out/a; ln out/a out/b")
        assert taking.taken() == {"./a": "one\n", "./b": "one\n"}

    @pytest.mark.parametrize(
        "script",
        [
            "mkdir out; echo x > out/a; exit 3",
            "mkdir out; echo x > out/a; kill -9 $$",
            "true",
            "echo x > out",
            "mkdir real; echo x > real/a; ln -s real out",
            "ln -s /usr/share out",
            "mkdir out; echo x > out/a; chmod 000 out/a",
        ],
        ids=["failed", "killed", "absent", "a file", "a link", "a link outside", "unreadable"],
    )
    async def test_nothing_is_taken_of(self, taking: Taking, script: str) -> None:
        outcome = await taking.run(script)
        assert not outcome.result.collected
        assert not taking.into.exists()

    async def test_a_link_on_the_way_to_the_folder_leads_nowhere(self, taking: Taking) -> None:
        outcome = await taking.run("ln -s /usr a", folder="a/share")
        assert not outcome.result.collected

    async def test_what_is_left_running_is_dead_before_anything_is_read(self, taking: Taking) -> None:
        folder = f"left-{uuid4().hex}"
        make = f"import os; os.mkdir('{folder}'); open('{folder}/big', 'wb').write(os.urandom(15_000_000))"
        source = f"{make}\n{_WATCHER % folder}"
        collect = Collect(folder=folder, into=taking.into, most_bytes=16 * MEGABYTE)
        outcome = await taking.bench.python(source, collect=collect)
        assert (outcome.result.collected, outcome.log) == (True, "watching\n"), (outcome.result, outcome.log)

    async def test_more_than_may_be_is_refused_and_leaves_nothing(self, taking: Taking) -> None:
        with pytest.raises(TooLarge, match="larger than the 1000000 bytes"):
            await taking.run("mkdir out; head -c 3000000 /dev/zero > out/big")
        assert not taking.into.exists()
        assert taking.bench.alive() == []

    async def test_a_huge_hollow_file_costs_no_more_than_what_may_be(self, taking: Taking) -> None:
        with pytest.raises(TooLarge):
            await taking.run("mkdir out; truncate -s 100G out/big")
        assert not taking.into.exists()

    async def test_a_run_that_is_out_of_time_leaves_nothing(self, taking: Taking) -> None:
        collect = Collect(folder="out", into=taking.into, most_bytes=MEGABYTE)
        script = "mkdir out; echo x > out/a; sleep 60"
        outcome = await taking.bench.run("sh", "-c", script, collect=collect, seconds=0.7)
        assert (outcome.result.ended, outcome.result.collected) == ("timeout", False)
        assert not taking.into.exists()

    async def test_cancelling_leaves_nothing(self, taking: Taking) -> None:
        task = asyncio.create_task(taking.run("mkdir out; echo x > out/a; echo up; sleep 60"))
        await until(taking.bench.has_printed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not taking.into.exists()
        assert taking.bench.alive() == []

    async def test_the_command_cannot_write_to_where_the_tar_goes(self, taking: Taking) -> None:
        source = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int), os.readlink('/proc/self/fd/0'))"
        collect = Collect(folder="out", into=taking.into, most_bytes=MEGABYTE)
        outcome = await taking.bench.run(PYTHON, "-c", source, collect=collect)
        assert outcome.log == "['0', '1', '2', '3'] /dev/null\n"  # the last is the listing itself

    @pytest.mark.parametrize("folder", ["", "/etc", "..", "a/../..", "a/../b", "./a", "a//b", "a\0b"])
    async def test_a_folder_that_is_no_plain_path_inside_is_refused(self, taking: Taking, folder: str) -> None:
        with pytest.raises(InvalidInput, match="to take out"):
            await taking.run("true", folder=folder)
