"""What is bubblewrap's own: what it needs of the machine, what it leaves there, what it costs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.compliance.sandbox import MEGABYTE, PYTHON, Bench, until
from adapters.sandbox.arguments import HOST_PATH, PROGRAMS
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import ControlGroups, label_name
from adapters.sandbox.toolchain import default_toolchain
from domain.errors import InvalidInput, IsolationMissing, ResourceShort
from domain.gates.verdict import read_report
from domain.ports.sandbox import SandboxRun

ROOT = Path(__file__).parents[2]
# Drops to an ordinary user when it is root, then tries a run there; all is imported before.
AS_USER = """
import asyncio, encodings.idna, os, signal, subprocess, sys, concurrent.futures.thread
from pathlib import Path
from adapters.sandbox.bubblewrap import Bubblewrap
from domain.ports.sandbox import SandboxRun
folder = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sandbox = Bubblewrap()
print(sorted(sandbox.missing()))
run = SandboxRun(label=sys.argv[2], argv=("sh", "-c", "id -u; cat kept.txt"), folder=folder, log=folder / "log",
                 allow_missing=frozenset({"memory", "pids"}))
print(asyncio.run(sandbox.run(run)).exit_code, (folder / "log").read_text())
"""
ENDLESS = """
import asyncio, sys
from pathlib import Path
from adapters.sandbox.bubblewrap import Bubblewrap
from domain.ports.sandbox import SandboxRun
label, mark, folder = sys.argv[1:]
argv = ("sh", "-c", "echo up; (trap '' TERM; sleep 60) & sleep 60", mark)
asyncio.run(Bubblewrap().run(SandboxRun(label=label, argv=argv, folder=Path(folder), log=Path(folder + ".log"))))
"""


@pytest.fixture
def sandbox() -> Bubblewrap:
    return Bubblewrap()


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Not below /dev, where all other tests may write: that is the sandbox's own."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def unlimited(tmp_path: Path) -> ControlGroups:
    """Control groups of a machine that has none."""
    return ControlGroups(root=tmp_path / "no-cgroups", membership=tmp_path / "no-membership")


@pytest.fixture
def bench(tmp_path: Path, sandbox: Bubblewrap) -> Bench:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "kept.txt").write_text("kept")
    template = SandboxRun(
        label=f"test-{uuid4().hex}",
        argv=("true",),
        folder=tmp_path / "checkout",
        log=tmp_path / "run.log",
        seconds=20,
        scratch_bytes=20 * MEGABYTE,
        allow_missing=frozenset(sandbox.missing()) - {"engine"},
    )
    return Bench(sandbox=sandbox, template=template)


def groups_of(label: str) -> list[Path]:
    """Walked, not globbed: other tests' groups go while we look."""
    name, walk = label_name(label), os.walk("/sys/fs/cgroup")
    return [Path(at, group) for at, groups, _ in walk for group in groups if group.startswith(name)]


def processes_of(label: str) -> list[str]:
    name = label_name(label).encode()
    return [entry for entry in os.listdir("/proc") if name in _bytes(Path("/proc", entry, "cmdline"))]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_nothing_is_left_of_a_run(bench: Bench, tmp_path: Path) -> None:
    open_before = os.listdir("/proc/self/fd")
    for argv, seconds in ((("true",), 20.0), (("sleep", "60"), 0.3), (("no-such-command",), 20.0)):
        await bench.run(*argv, seconds=seconds)
        assert processes_of(bench.template.label) == []
        assert groups_of(bench.template.label) == []
        assert str(tmp_path).encode() not in _bytes(Path("/proc/self/mounts"))
    assert len(os.listdir("/proc/self/fd")) <= len(open_before)


async def test_killing_the_worker_ends_its_run_and_the_next_one_clears_up(bench: Bench) -> None:
    label, folder = bench.template.label, bench.template.folder
    argv = [sys.executable, "-c", ENDLESS, label, bench.mark, str(folder)]
    worker = await asyncio.create_subprocess_exec(*argv, cwd=ROOT)
    log = Path(f"{folder}.log")
    await until(lambda: log.exists() and log.read_text() == "up\n")
    assert len(bench.alive()) > 2
    worker.kill()
    assert await worker.wait() == -signal.SIGKILL
    await until(lambda: bench.alive() == [])
    assert (await bench.run("echo", "again")).log == "again\n"
    assert groups_of(label) == []


async def test_without_bubblewrap_a_run_is_refused_with_the_command_that_installs_it(
    bench: Bench, tmp_path: Path
) -> None:
    sandbox = Bubblewrap(path=str(tmp_path))
    assert sandbox.missing()["engine"].endswith("install it: apt-get install -y bubblewrap")
    with pytest.raises(IsolationMissing, match="the sandbox needs bwrap"):
        await sandbox.run(replace(bench.template, allow_missing=frozenset({"engine", "memory", "pids"})))


async def test_without_user_namespaces_a_run_is_refused_with_the_command_that_allows_them(
    bench: Bench, tmp_path: Path
) -> None:
    for name in PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\necho bwrap: No permissions to create new namespace >&2; exit 1\n")
        (tmp_path / name).chmod(0o755)
    sandbox = Bubblewrap(path=str(tmp_path))
    with pytest.raises(IsolationMissing, match=r"No permissions to create new namespace.*allow it to: sysctl"):
        await sandbox.run(bench.template)


async def test_limits_that_cannot_be_had_are_refused_unless_they_are_allowed(
    bench: Bench, unlimited: ControlGroups
) -> None:
    sandbox = Bubblewrap(cgroups=unlimited)
    assert sandbox.missing().keys() == {"memory", "pids"}
    run = replace(bench.template, argv=("echo", "ran"), allow_missing=frozenset({"pids"}))
    with pytest.raises(IsolationMissing, match=r"memory cannot be limited.*--allow-missing memory"):
        await sandbox.run(run)
    result = await sandbox.run(replace(run, allow_missing=frozenset({"memory", "pids"})))
    assert (result.exit_code, run.log.read_text()) == (0, "ran\n")


async def test_without_control_groups_too_a_label_runs_once_and_nothing_survives(
    bench: Bench, unlimited: ControlGroups
) -> None:
    free = replace(bench, sandbox=Bubblewrap(cgroups=unlimited))
    both = frozenset({"memory", "pids"})
    source = ("sh", "-c", "echo up; sleep 60 & (trap '' TERM; sleep 60)", bench.mark)
    first = asyncio.create_task(free.run(*source, allow_missing=both))
    await until(free.has_printed)
    await free.run("true", allow_missing=both, log=bench.template.log.with_name("2.log"))
    ended = (await first).result
    assert (ended.exit_code, ended.ended) == (137, "exited")
    assert free.alive() == []


async def test_without_control_groups_the_machine_keeps_room_for_processes(
    bench: Bench, unlimited: ControlGroups
) -> None:
    free = replace(bench, sandbox=Bubblewrap(cgroups=unlimited))
    source = "import resource; print(*resource.getrlimit(resource.RLIMIT_NPROC))"
    tools = default_toolchain((PYTHON,), "")
    outcome = await free.python(source, allow_missing=frozenset({"memory", "pids"}), toolchain=tools)
    soft, hard = map(int, outcome.log.split())
    assert 0 < soft == hard <= 4096


def test_an_ordinary_user_can_run_it_too(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        Path(name).chmod(0o777)
        (Path(name) / "kept.txt").write_text("kept")
        argv = [sys.executable, "-c", AS_USER, name, bench.template.label]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    missing, said = done.stdout.split("\n", 1)
    assert missing in {"[]", "['memory', 'pids']"}
    assert said.split() == ["0", "1000", "kept"]


async def test_a_toolchain_in_a_hidden_home_is_shown_at_its_place(bench: Bench, on_disk: Path) -> None:
    prefix = on_disk / "home" / ".tools" / "versions" / "9.1"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "greet").write_text('#!/bin/sh\necho "hello from $0"\n')
    (prefix / "bin" / "greet").chmod(0o755)
    (on_disk / "home" / "secret").write_text("of the host")
    (on_disk / "home").chmod(0o700)
    link = on_disk / "home" / "hello"
    link.symlink_to(prefix / "bin" / "greet")
    script = f"greet; {link}; touch {prefix}/x; ls {on_disk}/home"
    outcome = await bench.run("sh", "-c", script, toolchain=(prefix, link))
    greeting = f"hello from {prefix}/bin/greet\nhello from {link}\n"
    assert outcome.log.startswith(greeting)
    assert "Read-only file system" in outcome.log
    assert outcome.log.endswith("\nhello\n")


async def test_the_toolchains_of_the_project_come_before_the_systems(bench: Bench, on_disk: Path) -> None:
    (on_disk / "tools" / "bin").mkdir(parents=True)
    (on_disk / "tools" / "bin" / "env").write_text("#!/bin/sh\necho ours\n")
    (on_disk / "tools" / "bin" / "env").chmod(0o755)
    assert (await bench.run("env", toolchain=(on_disk / "tools",))).log == "ours\n"


async def test_a_toolchain_that_the_sandbox_could_not_read_is_refused_when_root(bench: Bench, on_disk: Path) -> None:
    (on_disk / "tools").mkdir(mode=0o700)
    if os.geteuid() == 0:
        with pytest.raises(InvalidInput, match=r"chmod -R o\+rX"):
            await bench.run("true", toolchain=(on_disk / "tools",))
    else:
        assert (await bench.run("ls", str(on_disk), toolchain=(on_disk / "tools",))).log == "tools\n"


@pytest.mark.parametrize("name", ["/", "/work", "/tmp", "/etc", "/proc/1/root", "/run", "relative", "/nowhere"])
async def test_what_must_not_be_shown_is_no_toolchain(bench: Bench, name: str) -> None:
    with pytest.raises(InvalidInput, match="toolchain"):
        await bench.run("true", toolchain=(Path(name),))


@pytest.mark.parametrize("environment", [{"A=B": "x"}, {"": "x"}, {"A": "x\0y"}])
async def test_an_environment_that_cannot_be_is_refused(bench: Bench, environment: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="environment"):
        await bench.run("true", environment=environment)


async def test_a_real_pytest_of_a_virtual_environment_runs_inside(bench: Bench) -> None:
    (bench.template.folder / "test_it.py").write_text("def test_one(tmp_path): assert tmp_path.is_dir()\n")
    argv = (sys.executable, "-m", "pytest", "-q")
    outcome = await bench.run(*argv, toolchain=default_toolchain(argv, ""))
    report = read_report("pytest", outcome.log, outcome.result.exit_code)
    assert (outcome.result.exit_code, report.ran) == (0, 1), outcome.log


async def test_a_log_that_cannot_be_written_is_a_shortage_and_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(ResourceShort, match="No space left on device"):
        await bench.run("echo", "hello", log=Path("/dev/full"))
    assert groups_of(bench.template.label) == []
    assert processes_of(bench.template.label) == []


async def test_a_run_that_cannot_be_started_says_why(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tar").write_text("#!/bin/sh\nseq 1000\n")
    (tmp_path / "bin" / "tar").chmod(0o755)
    broken = replace(bench, sandbox=Bubblewrap(path=f"{tmp_path / 'bin'}:{HOST_PATH}"))
    with pytest.raises(ResourceShort, match="did not start the command: tar: This does not look like a tar archive"):
        await broken.run("true")


async def test_a_trivial_run_costs_little(bench: Bench) -> None:
    """In a moment when the machine has nothing else to do."""
    taken: list[float] = []
    until = time.monotonic() + 60
    while min(taken, default=1.0) >= 0.15:
        assert time.monotonic() < until, taken
        started = time.monotonic()
        await bench.run("true")
        taken.append(time.monotonic() - started)
