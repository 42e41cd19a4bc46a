"""mount is a sandbox as far as a copy and a process group go, and says where it is none."""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.compliance.delivery.sandbox_collect import CollectCompliance
from adapters.compliance.delivery.sandbox_ways import OutletCompliance, serving
from adapters.compliance.sandbox import PYTHON, Bench, SandboxCompliance, until
from adapters.sandbox import REGISTRY, open_sandbox, warnings
from adapters.sandbox.mount import ACCEPTED, Mount
from adapters.sandbox.mounted import processes
from adapters.sandbox.toolchain import default_toolchain
from domain.errors import IsolationMissing, TooLarge, UnknownName
from domain.ports.sandbox import Collect, Outlet, Sandbox, SandboxRun

FILES, NETWORK = "declared missing: files", "declared missing: network"
CANNOT = {
    "test_the_folder_is_shown_as_it_is": f"{FILES}: the copy has a place of its own, not /work",
    "test_nothing_else_can_be_reached": f"{NETWORK}: a run reaches what this machine reaches",
    "test_the_port_answers_at_its_own_number": f"{NETWORK}: nobody counts connections",
    "test_fifty_at_once_are_all_answered": f"{NETWORK}: nobody counts connections",
    "test_a_port_where_nobody_listens_is_counted": f"{NETWORK}: nobody counts connections",
    "test_a_run_without_the_outlet_does_not_reach_the_port": f"{NETWORK}: every port can be reached",
    "test_cancelling_breaks_connections_off_and_removes_the_socket": f"{NETWORK}: there is no socket to remove",
    "test_a_huge_hollow_file_costs_no_more_than_what_may_be": "a file's size is limited: the run fails before",
}


class _Here:
    @pytest.fixture(autouse=True)
    def declared(self, request: pytest.FixtureRequest) -> None:
        """What cannot be is expected to fail, with the reason, and must not pass unseen."""
        reason = CANNOT.get(request.function.__name__)
        if reason:
            fails = (AssertionError, pytest.fail.Exception)
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=fails))

    @pytest.fixture
    def sandbox(self) -> Sandbox:
        return open_sandbox("mount")

    @pytest.fixture
    def toolchain(self) -> tuple[Path, ...]:
        return default_toolchain((PYTHON,), "")


class TestMount(_Here, SandboxCompliance):
    pass


class TestMountWithAnOutlet(_Here, OutletCompliance):
    pass


class TestMountTakenFrom(_Here, CollectCompliance):
    pass


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "runs").mkdir()
    template = SandboxRun(
        label=f"test-{uuid4().hex}",
        argv=("true",),
        folder=tmp_path / "checkout",
        log=tmp_path / "runs" / "run.log",
        toolchain=default_toolchain((PYTHON,), ""),
        seconds=20,
        scratch_bytes=20_000_000,
        allow_missing=frozenset({"network"}),
    )
    return Bench(sandbox=Mount(), template=template)


def test_it_is_chosen_by_name_only_and_says_each_isolation_that_it_lacks() -> None:
    assert set(REGISTRY) == {"bubblewrap", "mount"}
    assert set(Mount().missing()) == {"network", "files", "memory", "pids"}
    assert warnings("bubblewrap") == ()
    assert len(warnings("mount")) == 4
    with pytest.raises(UnknownName, match="known: bubblewrap, mount"):
        open_sandbox("docker")


async def test_the_network_is_to_be_accepted_by_each_build(bench: Bench) -> None:
    with pytest.raises(IsolationMissing, match="--allow-missing network") as refused:
        await bench.run("echo", "ran", allow_missing=frozenset())
    assert "keys and other projects" not in str(refused.value)  # that, the configuration has accepted
    assert (await bench.run("echo", "ran")).log == "ran\n"


async def test_without_the_configurations_word_everything_is_to_be_accepted(bench: Bench) -> None:
    strict = replace(bench, sandbox=Mount(accepted=frozenset()))
    with pytest.raises(IsolationMissing, match=r"keys and other projects.*memory.*network.*processes"):
        await strict.run("true", allow_missing=frozenset())
    assert (await strict.run("echo", "ran", allow_missing=ACCEPTED | {"network"})).log == "ran\n"


async def test_nothing_is_left_of_a_run_however_it_ends(bench: Bench) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for script, seconds in (("echo x > made", 20.0), ("exit 3", 20.0), ("sleep 60", 0.3)):
        await bench.run("sh", "-c", script, seconds=seconds)
    assert [path.name for path in bench.template.log.parent.iterdir()] == ["run.log"]
    assert list(bench.template.folder.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_what_a_killed_worker_left_of_a_label_goes_with_its_next_run(bench: Bench) -> None:
    """The run of a process that is killed goes on without it, until its label is run again."""
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom adapters.sandbox.mount import Mount\n"
        "from domain.ports.sandbox import SandboxRun\n"
        "run = SandboxRun(label=sys.argv[1], folder=Path(sys.argv[2]), log=Path(sys.argv[3]), seconds=60,\n"
        "    argv=(sys.executable, '-c', \"import time; print('up', flush=True); time.sleep(60)\", sys.argv[4]),\n"
        "    allow_missing=frozenset({'network'}))\nasyncio.run(Mount().run(run))\n"
    )
    run = bench.template
    argv = [sys.executable, "-c", script, run.label, str(run.folder), str(run.log), bench.mark]
    worker = await asyncio.create_subprocess_exec(*argv, cwd=Path(__file__).parents[2])
    try:
        await until(bench.has_printed, seconds=30)
    finally:
        worker.kill()
        await worker.wait()
    assert any("time.sleep(60)" in line for line in bench.alive())
    await bench.run("true", log=run.log.with_name("next.log"))
    assert bench.alive() == []
    assert sorted(path.name for path in run.log.parent.iterdir()) == ["next.log", "run.log"]


async def test_a_process_is_limited_in_memory_and_in_the_size_of_a_file(bench: Bench) -> None:
    hog = await bench.python("bytearray(900_000_000)", memory_bytes=200_000_000)
    assert "MemoryError" in hog.log
    big = await bench.python("open('big', 'wb').write(bytes(30_000_000))")
    assert big.result.exit_code != 0


async def test_nothing_of_the_callers_environment_is_inside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENDWORK_CANARY", bench.mark)
    outcome = await bench.run("env")
    assert "PATH=" in outcome.log
    assert bench.mark not in outcome.log


async def test_a_folder_of_the_host_is_shown_at_its_place_and_its_programs_come_first(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "tool").write_text("#!/bin/sh\necho of the environment\n")
    (tmp_path / "env" / "bin" / "tool").chmod(0o755)
    (bench.template.folder / ".venv").mkdir()
    (bench.template.folder / ".venv" / "old").write_text("the checkout's own")
    mounts = {".venv": tmp_path / "env"}
    outcome = await bench.run(
        *("sh", "-c", 'tool; ls .venv; test "$VIRTUAL_ENV" = "$PWD/.venv" && echo placed'),
        mounts=mounts,
        programs=(".venv/bin",),
        environment={"VIRTUAL_ENV": "/work/.venv"},
    )
    assert outcome.log == "of the environment\nbin\nplaced\n"
    assert (tmp_path / "env" / "bin" / "tool").exists()


async def test_what_is_written_into_a_kept_folder_stays(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (bench.template.folder / "a.txt").write_text("a")
    await bench.run("sh", "-c", "mkdir .venv; echo made > .venv/b.txt", kept=tmp_path / "kept")
    assert (tmp_path / "kept" / ".venv" / "b.txt").read_text() == "made\n"
    assert (tmp_path / "kept" / "a.txt").read_text() == "a"


async def test_a_tar_is_copied_in_like_a_folder_and_measured_like_one(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("x" * 1_000)
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        tar.add(tmp_path / "in.txt", arcname="sub/in.txt")
    assert (await bench.run("sh", "-c", "wc -c < sub/in.txt", folder=tmp_path / "in.tar")).log.strip() == "1000"
    with pytest.raises(TooLarge):
        await bench.run("true", folder=tmp_path / "in.tar", scratch_bytes=500)


async def test_an_outlet_leads_to_its_port(bench: Bench, tmp_path: Path) -> None:
    with serving() as server:
        ask = f"import http.client; c = http.client.HTTPConnection('127.0.0.1', {server.server_port})"
        outcome = await bench.python(
            f"{ask}; c.request('GET', '/hello'); print(c.getresponse().read())",
            outlet=Outlet(port=server.server_port, socket=tmp_path / "s"),
        )
    assert outcome.log == "b'/hello'\n"


async def test_a_second_cancellation_does_not_leave_a_run_behind(bench: Bench) -> None:
    endless = bench.python("import time; print('up', flush=True); time.sleep(600)", seconds=600.0)
    task = asyncio.create_task(endless)
    await until(bench.has_printed)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.alive() == []


async def test_without_proc_the_processes_are_found_by_ps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", Path("/no/such/place"))
    left = (
        "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(60)\nprint('up', flush=True); time.sleep(0.2)"
    )
    outcome = await bench.python(left)
    assert outcome.log == "up\n"
    assert bench.alive() == []


async def test_a_command_that_closes_its_output_is_waited_for(bench: Bench, tmp_path: Path) -> None:
    collect = Collect(folder="out", into=tmp_path / "tar", most_bytes=100_000)
    script = "exec >/dev/null 2>&1; sleep 0.3; mkdir out; echo x > out/a"
    outcome = await bench.run("sh", "-c", script, collect=collect)
    assert (outcome.result.ended, outcome.result.collected) == ("exited", True)
