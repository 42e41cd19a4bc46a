"""Fifty builds whose model answers in a second, killed midway: beside the same steps in LangGraph on PostgreSQL.

``python -m benchmarks.langgraph``. Seventeen steps one after the other, three of which ask the model and wait a second
while the others answer at once, fifty times at once: once to the end, and once with kill -9 of the process that works
when half of the calls have been asked. Both sides run in one process, keep their state in one PostgreSQL cluster (a
database each, 20 connections at most), and ask the same model over HTTP. LangGraph is used as its documentation has it
(``theirs.py``), with a checkpoint a step. Mendwork's process is kept by its supervisor, with its default timeouts, and
its builds are whole ones, in three sagas each on Temporal's development server: beside the same seventeen steps each
keeps its books (event log, undo records, ledger, places, snapshots), most of which wait for one another. So without a
kill the figures compare what durable steps cost: on two cores Mendwork's side is bound by its processor time, not by
the model, and LangGraph's is not.

A call that was under way at the kill is asked again by both: nobody can know whether it was answered. What differs is
who does the rest; it is printed below the figures. LangGraph's commercial server has a queue and workers of its own,
which would take over some of it; here it is the library.

After the kill Mendwork's builds wait for two timers of 5 s by default (``timeouts.heartbeat`` for steps, and
``timeouts.sticky`` for decisions), and for the new process. What has not ended after ten minutes is named.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.ground.printing import is_quick, say, tell
from benchmarks.ground.waiting import Unfinished
from benchmarks.langgraph.site import Site, Took
from tests.postgres import running_cluster

BUILDS, SECONDS, PATIENCE = 50, 1.0, 600.0
BY_HAND = """
what had to be done by hand after the kill       LangGraph                          Mendwork
  start the process again                        a supervisor of one's own          `mendwork dev` does
  find what has not ended                        own list of threads, aget_state    Temporal knows
  go on with each                                ainvoke(None) for each, by a loop  the worker polls
  keep two processes off one thread              own lock                           Temporal does
  give a call the same key when made again       own key from thread and node       saga/step/attempt/turn
  count what the lost calls may have cost        own table                          the ledger holds it as unknown
  notice a process that hangs instead of dying   own watchdog                       heartbeat timeouts
"""


def main(builds: int = BUILDS, seconds: float = SECONDS, patience: float = PATIENCE) -> bool:
    """Print the table; whether all ended in time. Raises for builds and threads that did not end well."""
    done = True
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name, running_cluster() as cluster:
        site = Site(cluster=cluster, folder=Path(name), builds=builds, seconds=seconds, patience=patience)
        sides: dict[str, Callable[..., Awaitable[Took]]] = {"LangGraph": site.theirs, "Mendwork": site.ours}
        say(f"{builds} at once         wall s    CPU s   calls asked   asked again")
        for killed in (False, True):
            for who, side in sides.items():
                what = f"{who}, killed" if killed else who
                tell(what)
                try:
                    took = asyncio.run(_once(side, killed=killed))
                except Unfinished as error:
                    done = False
                    say(f"{what:<18} not ended {error}")
                else:
                    figures = f"{took.wall:8.1f} {took.cpu:8.1f} {took.asked:13} {took.again:13}"
                    say(f"{what:<18} {figures}   {took.note}".rstrip())
    say(BY_HAND)
    return done


async def _once(side: Callable[..., Awaitable[Took]], *, killed: bool) -> Took:
    return await side(killed=killed)


if __name__ == "__main__":
    quick = is_quick(
        "Builds killed midway, beside the same steps in LangGraph.", quick="four builds, a model of a tenth of a second"
    )
    sys.exit(0 if (main(4, 0.1) if quick else main()) else 1)
