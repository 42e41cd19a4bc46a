"""Does one thing to a local target in a process of its own, and may be killed in the middle of it."""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401  what the target's client imports when it is used would count as effects
import os
import signal
import sys
import tarfile  # noqa: F401
import xmlrpc.client  # noqa: F401
from pathlib import Path
from typing import Any

import adapters.target.local.overview  # noqa: F401
from adapters.compliance.delivery.target import SITE, order_of
from adapters.target.local.adapter import LocalTarget
from tests.adapters.target_scenes import SERVES

EFFECTS = frozenset(
    {
        *("os.rename", "os.mkdir", "os.chmod", "os.chown", "os.remove", "shutil.rmtree"),
        *("socket.bind", "socket.connect", "subprocess.Popen"),
    }
)


class Effects:
    """Counts them from its making on, and kills this process just before the one of a number."""

    def __init__(self, number: int) -> None:
        self.count = 0
        self._number = number
        sys.addaudithook(self._watch)

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EFFECTS or (event == "open" and arguments[2] and arguments[2] & os.O_CREAT):
            self.count += 1
            if self.count == self._number:
                os.kill(os.getpid(), signal.SIGKILL)


def call(sender: Any, folder: str, what: str, release: int, number: int) -> None:
    """Trigger a release, switch to it or roll back to it; sends how many effects that had."""

    async def main() -> int:
        target = opened(folder)
        effects = Effects(number)
        if what == "trigger":
            await target.units.trigger(order_of(release, SERVES, told=f"told {release}"))
        elif what == "switch":
            await target.traffic.switch(SITE, release, expected=1)
        else:
            await target.traffic.roll_back(SITE, release)
        return effects.count

    sender.send(asyncio.run(main()))


def opened(folder: str) -> LocalTarget:
    target = LocalTarget(Path(folder) / "target", start_seconds=20.0)
    assert target.missing() == {}
    return target


async def serve_and_stay(folder: str) -> None:
    """The first release, live; then says so, and goes on for ten minutes."""
    target = opened(folder)
    await target.units.trigger(order_of(1, SERVES, told="told 1"))
    await target.traffic.switch(SITE, 1, expected=0)
    print("live", flush=True)  # noqa: T201  what the test waits for
    await asyncio.sleep(600)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    asyncio.run(serve_and_stay(sys.argv[1]))
