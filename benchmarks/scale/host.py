"""One worker host of the scale benchmarks as a process: ``python -m benchmarks.scale.host '{"address": …}'``.

It says ``serving`` on stdout when its workers poll, writes the key of every call that it makes, and when, as a line
to ``bill``, and ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from adapters.blobs import open_blobs
from adapters.store import open_store
from adapters.temporal.connect import Target, connect_to
from benchmarks.scale.world import Host, Model, Shape, serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where a host works: the server's ``address``, a ``queue``, the ``store``'s URL, the ``folder`` of blobs."""

    address: str
    queue: str
    store: str
    folder: str
    bill: str
    shape: Shape

    def argv(self) -> list[str]:
        """The command that serves it."""
        return [sys.executable, "-P", "-m", "benchmarks.scale.host", json.dumps(asdict(self))]

    @classmethod
    def read(cls, text: str) -> Plan:
        """The inverse."""
        raw = json.loads(text)
        return cls(**{**raw, "shape": Shape(**raw["shape"])})


async def serve(plan: Plan) -> None:
    """Until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    bill = os.open(plan.bill, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        client = await connect_to(Target(address=plan.address, namespace="default", origin="the benchmark"))
        model = Model(plan.shape, begun=lambda key: _write(bill, key))
        async with await open_store(plan.store) as store:
            host = Host(plan.shape, store=store, blobs=open_blobs(Path(plan.folder)), model=model)
            async with serving(client, plan.queue, host):
                sys.stdout.write("serving\n")
                sys.stdout.flush()
                await stop.wait()
    finally:
        os.close(bill)


def _write(bill: int, key: str) -> None:
    os.write(bill, f"{key} {time.monotonic():.3f}\n".encode())  # one write: hosts share the file


if __name__ == "__main__":
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)  # models decline on purpose
    asyncio.run(serve(Plan.read(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)  # the threads of Temporal's client may abort an interpreter that shuts down under them
