"""Ports on loopback."""

from __future__ import annotations

import errno
import socket

from domain.errors import InvalidInput

LOOPBACK = "127.0.0.1"


def pick_port(wanted: int, *, setting: str) -> int:
    """``wanted``, or any free port for 0. Raises InvalidInput naming ``setting`` when it cannot be had."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as error:
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else f"fails: {error.strerror}"
            raise InvalidInput(f"port {wanted} {why}; set {setting} in mendwork.toml (0 picks a free one)") from error
        port: int = probe.getsockname()[1]
        return port
