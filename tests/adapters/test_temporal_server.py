"""The development server: real processes, real ports, real damage."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

from adapters.temporal.finding import find_server, refusal
from adapters.temporal.ports import pick_port
from adapters.temporal.server import RETENTION, TUNED, DevServer, ServerPlan
from domain.errors import InvalidInput, ServerUnavailable
from tests.adapters.temporal_probes import argv, eventually, gone, listening
from tests.conftest import TemporalServer


@pytest.fixture
def program() -> Path:
    return find_server(explicit=None, environment=os.environ)


def a_program(folder: Path, text: str) -> Path:
    path = folder / "temporal"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def test_histories_are_kept_for_thirty_days(temporal: TemporalServer) -> None:
    client = await temporal.connect()
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=temporal.namespace))
    assert described.config.workflow_execution_retention_ttl.ToTimedelta() == RETENTION


async def test_it_listens_on_loopback_only_is_tuned_and_is_gone_after_the_block(program: Path, tmp_path: Path) -> None:
    async with DevServer(ServerPlan(program=program, state=tmp_path, namespace="mine")) as server:
        pid = server.pid
        assert pid is not None
        addresses = listening(pid)
        assert {int(server.address.rpartition(":")[2]), int(server.ui.rpartition(":")[2])} <= {p for _, p in addresses}
        assert {address for address, _ in addresses} == {"127.0.0.1"}
        assert os.getsid(pid) != os.getsid(0), "Ctrl-C in our terminal would reach it"
        assert {f"{key}={value}" for key, value in TUNED.items()} <= set(argv(pid))
    assert gone(pid)
    assert server.pid is None


async def test_a_killed_server_starts_again_on_its_ports_with_its_histories(program: Path, tmp_path: Path) -> None:
    async with DevServer(ServerPlan(program=program, state=tmp_path)) as server:
        before = server.address
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert await server.ended() == -signal.SIGKILL
        await server.start()
        assert server.address == before
    with closing(sqlite3.connect(tmp_path / "temporal.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(("port", "setting"), [("port", "[temporal].port"), ("ui_port", "[temporal].ui_port")])
async def test_a_taken_port_is_named_with_its_setting(program: Path, tmp_path: Path, port: str, setting: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        plan = ServerPlan(program=program, state=tmp_path, **{port: number})
        with pytest.raises(InvalidInput, match=rf"port {number} is taken.*{re.escape(setting)}"):
            await DevServer(plan).start()


async def test_ports_that_are_lost_between_the_look_and_the_start_are_others(program: Path, tmp_path: Path) -> None:
    lost = "echo 'bind: address already in use'; yes a stack | head -c 9000; exit 2"
    first = a_program(
        tmp_path, f'echo "$8" >> {tmp_path}/ports; mkdir {tmp_path}/once && {{ {lost}; }}; exec {program} "$@"'
    )
    async with DevServer(ServerPlan(program=first, state=tmp_path / "state")) as server:
        tried = (tmp_path / "ports").read_text().split()
        assert len(set(tried)) == 2
        assert server.address.endswith(f":{tried[-1]}")


async def test_a_port_that_is_lost_every_time_is_said(tmp_path: Path) -> None:
    always = a_program(tmp_path, "echo 'bind: address already in use'; yes a stack | head -c 9000; exit 2")
    with pytest.raises(ServerUnavailable, match="another program took its port"):
        await DevServer(ServerPlan(program=always, state=tmp_path / "state")).start()


def test_port_zero_picks_a_free_one() -> None:
    assert pick_port(0, setting="x") > 1023


async def test_a_damaged_database_is_one_sentence_with_its_path(program: Path, tmp_path: Path) -> None:
    (tmp_path / "temporal.db").write_bytes(b"no database " * 100)
    with pytest.raises(ServerUnavailable, match=r"temporal\.db is damaged.*temporal\.log"):
        await DevServer(ServerPlan(program=program, state=tmp_path)).start()


async def test_a_server_that_ends_at_once_is_one_sentence_with_its_log(tmp_path: Path) -> None:
    plan = ServerPlan(program=a_program(tmp_path, "echo no disk; exit 3"), state=tmp_path)
    with pytest.raises(ServerUnavailable, match=r"ended at once.*temporal\.log"):
        await DevServer(plan).start()
    assert "no disk" in plan.log.read_text()


async def test_a_server_that_never_answers_is_ended_after_the_patience(tmp_path: Path) -> None:
    plan = ServerPlan(program=a_program(tmp_path, "echo $$ > pid; exec sleep 60"), state=tmp_path, patience=1)
    with pytest.raises(ServerUnavailable, match="not healthy after 1 s"):
        await DevServer(plan).start()
    assert gone(int((tmp_path / "pid").read_text()))


async def test_the_server_dies_with_a_parent_that_was_killed(program: Path, tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", _PARENT, str(program), str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    server = int(await parent.stdout.readline())
    assert not gone(server)
    parent.kill()
    await parent.wait()
    await eventually(lambda: gone(server))


_PARENT = """
import asyncio, sys
from pathlib import Path
from adapters.temporal.server import DevServer, ServerPlan

async def main():
    async with DevServer(ServerPlan(program=Path(sys.argv[1]), state=Path(sys.argv[2]))) as server:
        print(server.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


class TestFinding:
    def test_a_setting_wins_over_the_path(self, program: Path, tmp_path: Path) -> None:
        other = a_program(tmp_path, "echo 'temporal version 9 (Server 1.31.0, UI 2)'")
        assert find_server(explicit=program, environment={"PATH": str(tmp_path)}) == program
        assert find_server(explicit=None, environment={"PATH": str(tmp_path)}, tools=tmp_path) == other

    def test_a_broken_setting_is_an_error_and_never_a_fallback(self, program: Path, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"\[temporal\]\.server.*does not start"):
            find_server(explicit=tmp_path / "none", environment={"PATH": str(program.parent)})

    def test_a_broken_one_on_path_is_passed_over(self, program: Path, tmp_path: Path) -> None:
        a_program(tmp_path, "exit 1")
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "temporal").symlink_to(program)
        assert find_server(explicit=None, environment={"PATH": str(tmp_path)}, tools=tools) == tools / "temporal"

    def test_go_installs_are_found_at_home(self, program: Path, tmp_path: Path) -> None:
        installed = tmp_path / "go" / "bin"
        installed.mkdir(parents=True)
        (installed / "temporal").symlink_to(program)
        found = find_server(explicit=None, environment={"HOME": str(tmp_path)}, tools=tmp_path)
        assert found == installed / "temporal"

    def test_none_is_one_error_with_the_reasons_and_all_four_ways(self, tmp_path: Path) -> None:
        a_program(tmp_path, "echo 'temporal version 1.0 (Server 1.24.2)'")
        with pytest.raises(ServerUnavailable) as caught:
            find_server(explicit=None, environment={"PATH": str(tmp_path)}, tools=tmp_path / "none")
        sentence = str(caught.value)
        for part in ("server 1.24, older than 1.29", "[temporal].server", "PATH", "temporal.download", "go install"):
            assert part in sentence
        assert "\n" not in sentence

    def test_a_program_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        assert "no Temporal server" in refusal(a_program(tmp_path, "echo temporal 3"))
