"""What every sandbox must withstand: programs that a model might write, by mistake or made to."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.compliance.sandbox import MEGABYTE, Bench, Benched, until

# Each line of its output is an attempt and what came of it: "open" is a hole.
ATTEMPTS = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, action):
    try:
        action()
        print(name, "open")
    except OSError as error:
        print(name, "shut", error.errno)

def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""
_ESCAPES = """
def write(path):
    with open(path, "w") as file:
        file.write("1")

for path in ("/usr", "/", "/proc", "/dev"):
    attempt(f"remount {path}", lambda: call(libc.mount, None, path.encode(), None, 4096 | 32, None))
attempt("mount tmpfs", lambda: call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None))
attempt("umount", lambda: call(libc.umount2, b"/dev", 2))
attempt("mknod disk", lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(254, 0)))
attempt("mknod memory", lambda: os.mknod("/work/mem", 0o20600, os.makedev(1, 1)))
attempt("user namespace", lambda: call(libc.unshare, 0x10000000))
attempt("mount namespace", lambda: call(libc.unshare, 0x00020000))
attempt("chroot", lambda: os.chroot("/work"))
attempt("be root", lambda: os.setuid(0))
attempt("be somebody else", lambda: os.setgroups([0]))
attempt("host name", lambda: socket.sethostname("other"))
attempt("ptrace the caller", lambda: call(libc.ptrace, 16, int(os.environ["HOST_PID"]), None, None))
attempt("kill the caller", lambda: os.kill(int(os.environ["HOST_PID"]), 0))
attempt("raise priority", lambda: os.nice(-5))
attempt("reboot", lambda: call(libc.reboot, 0))
for path in (
    "/usr/x", "/bin/sh", "/etc/passwd", "/x", "/dev/x", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/scsi/scsi",
):
    attempt(f"write {path}", lambda: write(path))
for path in (
    "/etc/shadow", "/proc/kcore", "/proc/kmsg", "/sys/kernel", "/dev/mem", "/dev/kmsg", "/root/.ssh", "/sys/fs/cgroup",
    "/proc/1/root" + os.environ["HOST_FILE"], os.environ["HOST_FILE"], "/run/docker.sock", "/var/run/docker.sock",
    "/proc/sys/fs/binfmt_misc/register",
):
    attempt(f"read {path}", lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
"""
NETWORK = """
def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(3)
        client.connect(address)

port = int(os.environ["HOST_PORT"])
attempt("loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
attempt("loopback 6", lambda: connect(socket.AF_INET6, ("::1", port)))
attempt("unix", lambda: connect(socket.AF_UNIX, os.environ["HOST_SOCKET"]))
attempt("abstract", lambda: connect(socket.AF_UNIX, "\\0" + os.environ["HOST_ABSTRACT"]))
attempt("metadata", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("name", lambda: socket.getaddrinfo("host.docker.internal", 80))
print(socket.if_nameindex())
"""
_SELF = """
import os
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(os.getuid(), os.getgid(), os.getgroups(), status["NoNewPrivs"], *(status["Cap" + n] for n in
      ("Inh", "Prm", "Eff", "Bnd", "Amb")))
print(len([n for n in os.listdir("/proc") if n.isdigit()]), sorted(map(int, os.listdir("/proc/self/fd"))))
"""
_BOMB = "import os\nprint('up', flush=True)\nwhile True:\n  try: os.fork()\n  except OSError: pass"


class Listening:
    """Servers of the host that a run must not reach."""

    @pytest.fixture
    def listening(self, tmp_path: Path) -> Iterator[dict[str, str]]:
        """Servers of the host: on its loopback, on a socket file, on an abstract name."""
        abstract = f"mendwork-{os.getpid()}-{tmp_path.name}"
        with (
            socket.create_server(("127.0.0.1", 0)) as loopback,
            socket.socket(socket.AF_UNIX) as unix,
            socket.socket(socket.AF_UNIX) as hidden,
        ):
            path = os.path.relpath(tmp_path / "s")
            unix.bind(min(path, str(tmp_path / "s"), key=len))
            hidden.bind("\0" + abstract)
            unix.listen()
            hidden.listen()
            port = str(loopback.getsockname()[1])
            yield {"HOST_PORT": port, "HOST_SOCKET": str(tmp_path / "s"), "HOST_ABSTRACT": abstract}


class HostileCompliance(Benched, Listening):
    """No way out, and no way to take more than was given."""

    async def test_no_attempt_to_get_out_succeeds(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "host.txt").write_text("of the host")
        environment = {"HOST_FILE": str(tmp_path / "host.txt"), "HOST_PID": str(os.getpid())}
        outcome = await bench.python(ATTEMPTS + _ESCAPES, environment=environment)
        assert outcome.result.exit_code == 0, outcome.log
        assert [line for line in outcome.log.splitlines() if " shut " not in line] == [], outcome.log
        assert outcome.log.count(" shut ") > 35

    async def test_a_run_has_no_privilege_and_sees_only_itself(self, bench: Bench) -> None:
        lines = (await bench.python(_SELF)).log.splitlines()
        uid, gid, *rest = lines[0].split()
        assert "0" not in (uid, gid)
        assert rest[-6:] == ["1", *["0" * 16] * 5]
        seen, _, descriptors = lines[1].partition(" ")
        assert int(seen) <= 4
        assert descriptors == "[0, 1, 2, 3]"  # the last is the listing itself

    async def test_no_file_of_the_host_is_held_open_inside(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "readlink /proc/[0-9]*/fd/*")
        inside = ("/dev/null", "pipe:", "socket:", "anon_inode:")
        assert "/dev/null" in outcome.log
        assert [line for line in outcome.log.splitlines() if not line.startswith(inside)] == []

    async def test_nothing_of_the_callers_environment_is_inside(self, bench: Bench) -> None:
        canary = f"canary-{bench.mark[5:]}"
        os.environ["MENDWORK_CANARY"] = canary
        try:
            outcome = await bench.run("sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline; ls -laR /tmp /work /etc")
        finally:
            del os.environ["MENDWORK_CANARY"]
        assert "PATH=" in outcome.log
        assert canary not in outcome.log

    async def test_nothing_outside_can_be_reached(self, bench: Bench, listening: dict[str, str]) -> None:
        outcome = await bench.python(ATTEMPTS + NETWORK, environment=listening)
        *attempts, interfaces = outcome.log.splitlines()
        assert len(attempts) == 7, outcome.log
        assert [line for line in attempts if " shut " not in line] == []
        assert interfaces == "[(1, 'lo')]"

    async def test_a_fork_bomb_ends_while_another_run_goes_on(self, bench: Bench) -> None:
        bench.needs("pids")
        bomb = asyncio.create_task(bench.python(_BOMB))
        await until(bench.has_printed)
        other = await bench.run("sh", "-c", "echo fine", label=f"{bench.mark}-x", log=bench.template.log.with_name("o"))
        assert (other.result.exit_code, other.log) == (0, "fine\n")
        assert (await bomb).result.ended == "processes"
        assert bench.alive() == []

    async def test_a_program_that_can_live_with_its_process_limit_may(self, bench: Bench) -> None:
        bench.needs("pids")
        source = (
            "import os, time\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(60)\nexcept OSError: print('full')"
        )
        outcome = await bench.python(source)
        assert (outcome.result.ended, outcome.log) == ("exited", "full\n")

    async def test_memory_is_cut_at_its_limit(self, bench: Bench) -> None:
        bench.needs("memory")
        outcome = await bench.python("hog = []\nwhile True: hog.append(bytearray(10_000_000))")
        assert outcome.result.ended == "memory"
        assert outcome.result.exit_code != 0
        assert outcome.result.seconds < 10

    async def test_a_child_killed_for_memory_ends_the_run(self, bench: Bench) -> None:
        bench.needs("memory")
        hog = "if os.fork() == 0:\n  hog = []\n  while True: hog.append(bytearray(10_000_000))\n"
        source = f"import os, time\n{hog}time.sleep(60)"
        outcome = await bench.python(source)
        assert outcome.result.ended == "memory"
        assert outcome.result.seconds < 10
        assert bench.alive() == []

    @pytest.mark.parametrize("folder", ["/tmp", "/work", "/dev/shm", "/var/tmp"])  # noqa: S108
    async def test_a_full_disk_is_the_runs_own(self, bench: Bench, folder: str) -> None:
        source = f"with open('{folder}/big', 'wb') as f:\n  while True: f.write(bytes(1_000_000))"
        outcome = await bench.python(source)
        assert "No space left on device" in outcome.log
        assert outcome.result.ended == "exited"

    async def test_a_huge_file_takes_nothing_that_is_not_there(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "truncate -s 100G /work/sparse; fallocate -l 100G /work/full")
        assert outcome.result.seconds < 10
        assert "No space left" in outcome.log

    async def test_a_flood_of_inodes_is_cut(self, bench: Bench) -> None:
        bench.needs("memory")
        source = "import os\nn = 0\nwhile True:\n  os.mkdir(f'/work/{n}'); n += 1"
        outcome = await bench.python(source, memory_bytes=60 * MEGABYTE)
        assert outcome.result.ended == "memory" or "No space left" in outcome.log

    async def test_a_gigabyte_of_log_costs_neither_disk_nor_the_verdict(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "echo first; yes | head -c 1000000000; echo last")
        assert (outcome.result.exit_code, outcome.result.ended, outcome.result.log_cut) == (0, "exited", True)
        assert bench.template.log.stat().st_size <= bench.template.log_bytes
        assert outcome.log.startswith("first\ny\n")
        assert outcome.log.endswith("y\nlast\n")

    async def test_a_log_without_end_is_said_to_be_one(self, bench: Bench) -> None:
        outcome = await bench.run("yes", seconds=0.7)
        assert (outcome.result.ended, outcome.result.log_cut) == ("log", True)
