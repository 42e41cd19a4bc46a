"""A release's command in bubblewrap, and the relay that brings requests to it.

The relay, a haproxy, stands in the release's network but outside its process tree, and accepts on a socket that was
opened in the machine's network: the release never holds a socket of the machine's, from which it could connect on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from .entering import die_with_parent

INNER_PORT = 8080
GRACE = 3
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC_OF_HOST = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
_ETC = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nrelease:x:1000:1000:release:/scratch:/bin/sh\n",
    "/etc/group": "root:x:0:\nrelease:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/scratch",
    "TMPDIR": "/tmp",  # noqa: S108 - a memory file system of the release's own
    "LANG": "C.UTF-8",
}
# Each request has a connection of its own to the release: one that the release closes while idle would cost a request.
_RELAY = """global
  maxconn 2000
  nbthread 1
  no strict-limits
defaults
  mode http
  option http-server-close
  retries 0
  timeout client 60s
  timeout http-keep-alive 60s
  timeout connect 5s
  timeout server 60s
  timeout tunnel 1h
listen relay
  bind fd@{listener}
  http-response set-header X-Mendwork-Release {release}
  server release 127.0.0.1:{port}
"""


class Cell:
    """What runs of one release, and the signals that end it."""

    def __init__(self) -> None:
        self.why = ""
        self._relay: subprocess.Popen[bytes] | None = None
        self._main: subprocess.Popen[bytes] | None = None
        self._status, self._status_in = os.pipe()

    def start(self, order: dict[str, Any], argv: list[str], shown: Path) -> None:
        """The environment is inherited by bubblewrap: an argument could be read by everybody on the machine."""
        files = {name: _memory_file(text) for name, text in _ETC.items()}
        inherited = (self._status_in, *files.values())
        self._main = subprocess.Popen(
            [*_bwrap(order, self._status_in, files, shown), "--", *argv],
            env={**_ENVIRONMENT, **order["environment"], "PORT": str(INNER_PORT)},
            cwd="/",
            stdin=subprocess.DEVNULL,
            pass_fds=inherited,
        )
        for descriptor in inherited:
            os.close(descriptor)

    def start_relay(self, order: dict[str, Any], listener: socket.socket) -> None:
        """Takes ``listener`` over."""
        text = _RELAY.format(listener=listener.fileno(), release=order["release"], port=INNER_PORT)
        config = _memory_file(text)
        self._relay = subprocess.Popen(
            [order["haproxy"], "-db", "-q", "-f", f"/proc/self/fd/{config}"],
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            pass_fds=(config, listener.fileno()),
            preexec_fn=die_with_parent,
        )
        os.close(config)
        listener.close()

    def ask_to_end(self, *_: object) -> None:
        """SIGTERM for the command itself; its whole process tree is killed when that is not enough."""
        if self._main is None:
            os._exit(128 + signal.SIGTERM)
        signal.alarm(GRACE)
        try:
            first = json.loads(os.read(self._status, 4096).split(b"\n")[0])["child-pid"]
            commands = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            os.kill(int(commands[0]), signal.SIGTERM)
        except (OSError, ValueError, IndexError, KeyError):
            self.kill()

    def kill(self, *_: object) -> None:
        """The process tree dies with bubblewrap."""
        if self._main is not None:
            self._main.send_signal(signal.SIGKILL)

    def too_late(self, *_: object) -> None:
        """The time of the command is over."""
        self.why = "ReleaseSilent"
        self.kill()

    def wait(self) -> int:
        """Until the command ends, which ends all else: its exit code as a shell gives it."""
        while True:
            pid, status = os.wait()
            if self._main is not None and pid == self._main.pid:
                break
            self._relay, self.why = None, "TargetUnavailable"
            self.kill()
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def _memory_file(text: str) -> int:
    descriptor = os.memfd_create("mendwork")
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _bwrap(order: dict[str, Any], status: int, etc: dict[str, int], shown: Path) -> list[str]:
    argv = [*order["bwrap"], "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", "release"]
    argv += ["--die-with-parent", "--new-session", "--json-status-fd", str(status)]
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC_OF_HOST:
        argv += ["--ro-bind-try", name, name]
    for name, descriptor in etc.items():
        argv += ["--file", str(descriptor), name]
    argv += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", "64000000", "--tmpfs", "/tmp"]  # noqa: S108
    argv += ["--perms", "1777", "--size", "64000000", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    argv += ["--ro-bind", str(shown / "release"), "/release", "--bind", str(shown / "scratch"), "/scratch"]
    return [*argv, "--remount-ro", "/", "--chdir", "/release"]
