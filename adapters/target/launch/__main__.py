"""``python3 -m launch unit FOLDER``, ``step FOLDER KEY`` or ``proxy FOLDER HAPROXY``, from the target's folder."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

from .cell import Cell
from .earlier import end_earlier
from .entering import enter

_PORT_SECONDS = 0.5


class Ended(Exception):
    """Why this program ends at once: ``kind`` is the class of the fault."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def listen(port: int) -> socket.socket:
    """Waits a little: the relay of a killed launcher dies a moment after it."""
    give_up = time.monotonic() + _PORT_SECONDS
    while True:
        try:
            return socket.create_server(("127.0.0.1", port), backlog=512)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if time.monotonic() > give_up:
                raise Ended("PortTaken", f"port {port} of this release is held by another program") from error
        time.sleep(0.05)


def run_unit(folder: Path, say: int) -> int:
    """Serve until the release's process ends; its exit code."""
    end_earlier(folder / "pid")
    order = json.loads((folder / "order.json").read_text())
    cell = Cell()
    listener = listen(order["port"])
    shown = enter(folder, order)
    signal.signal(signal.SIGTERM, cell.ask_to_end)
    signal.signal(signal.SIGALRM, cell.kill)
    cell.start_relay(order, listener)
    cell.start(order, order["run"], shown)
    code = cell.wait()
    if cell.why:
        raise Ended(cell.why, "the relay in front of this release ended")
    tell(say, kind="ReleaseDied", sentence=f"its process ended with exit code {code}")
    return code


def run_step(folder: Path, say: int, key: str) -> int:
    """Run the command that ``steps/<key>.order`` holds; its exit code."""
    end_earlier(folder / "steps" / f"{key}.pid")
    order = json.loads((folder / "order.json").read_text())
    step = json.loads((folder / "steps" / f"{key}.order").read_text())
    cell = Cell()
    shown = enter(folder, order)
    signal.signal(signal.SIGTERM, cell.ask_to_end)
    signal.signal(signal.SIGALRM, cell.too_late)
    signal.setitimer(signal.ITIMER_REAL, step["seconds"])
    cell.start(order, step["argv"], shown)
    code = cell.wait()
    if cell.why:
        raise Ended(cell.why, f"it did not end within {step['seconds']:g} seconds")
    sentence = f"it ended with exit code {code}" if code else ""
    tell(say, kind="ReleaseDied" if code else "", sentence=sentence)
    return code


def tell(say: int, *, kind: str, sentence: str) -> None:
    """How it ended, for whoever asks later."""
    os.write(say, json.dumps({"kind": kind, "sentence": sentence}).encode())


def main(argv: list[str]) -> int:
    """Returns the exit code of what was run."""
    kind, folder = argv[0], Path(argv[1])
    if kind == "proxy":
        end_earlier(folder / "pid")
        os.execv(argv[2], [argv[2], "-db", "-C", str(folder), "-f", "haproxy.cfg"])  # noqa: S606
    # Opened while we may: the release's user writes what is said.
    result = folder / "fault" if kind == "unit" else folder / "steps" / f"{argv[2]}.ended"
    say = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        return run_unit(folder, say) if kind == "unit" else run_step(folder, say, argv[2])
    except Ended as end:
        tell(say, kind=end.kind, sentence=str(end))
        return 1
    except OSError as error:
        tell(say, kind="ResourceShort", sentence=f"this machine could not start it: {error}")
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
