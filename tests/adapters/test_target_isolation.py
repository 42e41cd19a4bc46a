"""A release is model-written code: what it can see and reach, looked at from inside and outside (adapters.target)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.compliance.delivery.target import SERVICE, SITE, order_of, state_of, tar_of
from adapters.target.local.adapter import LocalTarget
from adapters.target.local.machine import HOST_PATH, Machine
from adapters.target.local.overview import stop_all
from domain.errors import PortTaken, ResourceShort, TargetMissing
from domain.ports.target import ABSENT, DEAD, HEALTHY, Order
from tests.adapters.target_scenes import SERVES, descendants, local_target, up

CANARY = "canary-5f1e"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a unit a user of its own")
# Looks around, prints what it found as JSON, then serves.
PROBE = """
import json, os, pathlib, socket, sys
def tried(function, *arguments):
    try:
        return str(function(*arguments))
    except OSError as error:
        return type(error).__name__
def connect(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=2):
        return "reached"
def sockets():
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            for name in tried(os.listdir, f"/proc/{entry.name}/fd"):
                pass
    return [tried(os.readlink, f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
status = pathlib.Path("/proc/self/status").read_text().splitlines()
print(json.dumps({
    "host port": tried(connect, os.environ["HOST_PORT"]),
    "metadata": tried(lambda: socket.create_connection(("169.254.169.254", 80), timeout=2)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "state": tried(os.listdir, os.environ["STATE"]),
    "root": sorted(os.listdir("/")),
    "release": sorted(os.listdir("/release")),
    "write release": tried(open, "/release/new", "w"),
    "write usr": tried(open, "/usr/new", "w"),
    "scratch": tried(lambda: pathlib.Path("/scratch/mine").write_text("x")),
    "others": sorted(name for name in os.listdir("/proc") if name.isdigit()),
    "commands": [pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in os.listdir("/proc") if pid.isdigit()],
    "environment": dict(os.environ),
    "sockets": [name for name in sockets() if name.startswith("socket:")],
    "kill": tried(os.kill, 1, 9),
    "rights": {line.split(":")[0]: line.split(":")[1].strip() for line in status},
}), flush=True)
"""


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    async with local_target(tmp_path) as target:
        yield target


def probing(release: int, environment: dict[str, str]) -> Order:
    content = tar_of({"service.py": PROBE + SERVICE})
    order = order_of(release, SERVES)
    return replace(order, content=content, artifact=hashlib.sha256(content).hexdigest(), environment=environment)


async def probed(target: LocalTarget, order: Order) -> dict[str, Any]:
    """What a release found when it looked around."""
    await target.units.trigger(order)
    status = await state_of(target, order.unit, HEALTHY)
    found: dict[str, Any] = json.loads(status.log.splitlines()[0])
    return found


async def test_a_release_sees_its_own_folder_and_reaches_nothing(target: LocalTarget, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    await up(target, 1)
    with socket.create_server(("127.0.0.1", 0)) as host:
        environment = {"HOST_PORT": str(host.getsockname()[1]), "STATE": str(tmp_path), "PORT": "1"}
        found = await probed(target, probing(2, environment))
    assert found["host port"] == "ConnectionRefusedError"
    assert found["metadata"] == "OSError"
    assert found["interfaces"] == ["lo"]
    assert found["state"] == "FileNotFoundError"
    system = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "dev", "etc", "proc", "tmp"}
    assert set(found["root"]) - system == {"release", "scratch"}
    assert found["release"] == ["service.py"]
    assert (found["write release"], found["write usr"]) == ("OSError", "OSError")
    assert found["scratch"] == "1"
    assert found["kill"] in ("None", "PermissionError"), "process 1 of the cell, which shrugs it off"


async def test_a_release_sees_no_process_no_socket_and_no_variable_but_its_own(target: LocalTarget) -> None:
    await up(target, 1)
    found = await probed(target, probing(2, {"HOST_PORT": "1", "STATE": "/", "MINE": CANARY}))
    assert found["others"] == ["1", "2"]
    assert {command.split("\0")[0].rpartition("/")[2] for command in found["commands"]} == {"bwrap", "python3"}
    assert found["sockets"] == []
    names = {"HOME", "HOST_PORT", "LANG", "MINE", "PATH", "PORT", "PWD", "STATE", "TMPDIR"}
    assert set(found["environment"]) - {"LC_CTYPE"} == names
    assert found["environment"]["MINE"] == CANARY


async def test_a_release_has_no_rights_and_can_get_none(target: LocalTarget) -> None:
    rights = (await probed(target, probing(1, {"HOST_PORT": "1", "STATE": "/"})))["rights"]
    assert {int(rights[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert rights["NoNewPrivs"] == "1"


@as_root
async def test_each_release_has_a_user_of_its_own_seen_from_outside(target: LocalTarget) -> None:
    await up(target, 1, 2, live=1)
    users: dict[str, set[str]] = {}
    for pid in descendants(target.supervisor.pid()):
        status, command = rights_of(pid), command_of(pid)
        if "service.py" in command:
            assert len(set(status["Uid"])) == len(set(status["Gid"])) == 1
            assert status["Groups"] in ([], status["Gid"][:1])
            assert status["NoNewPrivs"] == ["1"]
        kind = "root" if "supervisord" in command else "other"
        users.setdefault(status["Uid"][1], set()).add(kind)
    assert users.pop("0") == {"root"}, "nothing but the supervisor is root"
    assert users.pop("61183") == {"other"}, "the proxy"
    assert {int(user) for user in users} == {each["uid"] for each in orders(target)}
    assert len(users) == 2
    assert all(61_184 <= int(user) < 65_184 for user in users)


def rights_of(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":")[0]: line.split(":")[1].split() for line in lines}


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def files_with(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def orders(target: LocalTarget) -> list[dict[str, Any]]:
    return [order for unit in target.folders.units() if (order := target.folders.order(unit))]


async def test_a_secret_is_in_no_command_line_and_no_log_and_only_root_can_read_its_file(
    target: LocalTarget, tmp_path: Path
) -> None:
    order = replace(order_of(1, SERVES), environment={"TOLD": CANARY})
    await target.units.trigger(order)
    await state_of(target, order.unit, HEALTHY)
    await target.units.command(order.unit, ("true",), key="a", seconds=20)
    seen = [command_of(pid) for pid in descendants(target.supervisor.pid())]
    assert len(seen) > 3
    assert CANARY not in "".join(seen)
    holding = files_with(CANARY, tmp_path)
    assert [path.name for path in holding] == ["order.json"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    assert target.folders.root.stat().st_mode & 0o777 == 0o700


async def test_a_site_whose_port_is_taken_is_told_and_nothing_else_changes(target: LocalTarget) -> None:
    await up(target, 1, 2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        site = replace(SITE, port=other.getsockname()[1])
        with pytest.raises(PortTaken, match="held by another program"):
            await target.traffic.switch(site, 1, expected=0)
        assert await target.traffic.current(SITE) is None
        live = await target.traffic.switch(SITE, 1, expected=0)
        with pytest.raises(PortTaken):
            await target.traffic.switch(site, 2, expected=1)
        assert await target.traffic.current(SITE) == live
    moved = await target.traffic.switch(site, 2, expected=1)
    assert moved.url == f"http://127.0.0.1:{site.port}"


async def test_a_unit_without_a_free_port_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        async with local_target(tmp_path, ports=range(port, port + 1)) as target:
            with pytest.raises(PortTaken):
                await target.units.trigger(order_of(1, SERVES))
            assert (await target.units.poll(order_of(1, ()).unit)).state == ABSENT
            assert not [*target.folders.root.glob("notes/production/*")]


async def test_a_unit_whose_port_was_taken_while_it_was_down_says_so_and_then_gets_another(target: LocalTarget) -> None:
    await up(target, 1)
    unit, port = order_of(1, ()).unit, orders(target)[0]["port"]
    await asyncio.to_thread(stop_all, target)
    with socket.create_server(("127.0.0.1", port)):
        target.supervisor.ensure()
        status = await state_of(target, unit, DEAD)
        assert (status.kind, status.sentence) == (
            "PortTaken",
            f"port {port} of this release is held by another program",
        )
        await up(target, 1)
        assert orders(target)[0]["port"] != port


@as_root
async def test_a_full_disk_is_told_and_leaves_nothing_half(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk))
    try:
        async with local_target(disk) as target:
            await up(target, 1, live=1)
            content = tar_of({"service.py": SERVICE, "large": "x" * 2_000_000})
            large = replace(order_of(2, SERVES), content=content, artifact=hashlib.sha256(content).hexdigest())
            with pytest.raises(ResourceShort):
                await target.units.trigger(large)
            assert (await target.units.poll(large.unit)).state == ABSENT
            assert sorted(path.name for path in target.folders.root.glob("notes/production/*[0-9]*")) == ["1"]
            await up(target, 3)
            assert (await target.traffic.switch(SITE, 3, expected=1)).release == 3
    finally:
        run("umount", str(disk))


def run(*argv: str) -> None:
    subprocess.run(argv, check=True)


async def test_without_its_programs_the_target_says_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    machine = Machine(path=str(tmp_path / "empty"), supervisor=str(tmp_path / "no-python"))
    target = LocalTarget(tmp_path / "target", machine=machine)
    missing = target.missing()
    assert set(missing) == {"haproxy", "bwrap", "python3", "supervisord"}
    assert missing["haproxy"] == "the local target needs haproxy; install it: apt-get install -y haproxy"
    assert missing["supervisord"].endswith("install it: uv sync --extra deploy")
    with pytest.raises(TargetMissing, match="needs haproxy"):
        await target.units.trigger(order_of(1, SERVES))


def test_a_machine_that_cannot_isolate_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    missing = Machine(path=f"{tmp_path}:{HOST_PATH}").missing()
    assert set(missing) == {"isolation"}
    assert "allow it to: sysctl" in missing["isolation"]
