"""Becoming a release's user, in a network of its own."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import struct
from pathlib import Path
from typing import Any

_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_BIND, _PRIVATE_ALL = 4096, 16384 | (1 << 18)
_DEATH_SIGNAL, _SET_DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38
_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_KILL = 9
_STAGES = ("/mnt", "/srv", "/media", "/opt")


def enter(folder: Path, order: dict[str, Any]) -> Path:
    """Leave the machine's network and, as root, its users; return where ``release`` and ``scratch`` are shown.

    The network belongs to a user namespace that holds this process and not the release: nothing in the release's cell
    has a right over it, also not the right to set an interface up. Raises OSError.
    """
    shown = folder.absolute()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    if os.geteuid() == 0:
        shown = _stage(folder)
        resource.setrlimit(resource.RLIMIT_NPROC, (order["processes"], order["processes"]))
        os.setgroups([])
        os.setresgid(order["uid"], order["uid"], order["uid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
        _call("prctl", _SET_DUMPABLE, 1, 0, 0, 0)  # lost with the user; without it the maps below are root's
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _NEW_USER | _NEW_NETWORK)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path("/proc/self", name).write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _INTERFACE_FLAGS, struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b""))
    return shown


def die_with_parent() -> None:
    """For a new process, before it becomes another program."""
    _call("prctl", _DEATH_SIGNAL, _KILL, 0, 0, 0)


def _stage(folder: Path) -> Path:
    """Only root can reach the folders: show them, in mounts of our own, to a bubblewrap that is not root."""
    stage = next(Path(name) for name in _STAGES if os.path.isdir(name))
    _call("unshare", _NEW_MOUNTS)
    _call("mount", None, b"/", None, ctypes.c_ulong(_PRIVATE_ALL), None)
    # Opened in these mounts, and before one of them is covered: the stage may lie above the folder.
    opened = {name: os.open(folder / name, os.O_RDONLY | os.O_DIRECTORY) for name in ("release", "scratch")}
    _call("mount", b"none", os.fsencode(stage), b"tmpfs", ctypes.c_ulong(0), b"mode=755,size=64k")
    for name, descriptor in opened.items():
        (stage / name).mkdir()
        source = f"/proc/self/fd/{descriptor}".encode()
        _call("mount", source, os.fsencode(stage / name), None, ctypes.c_ulong(_BIND), None)
        os.close(descriptor)
    return stage


def _call(function: str, *arguments: object) -> None:
    """A system call that Python does not have."""
    if getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
