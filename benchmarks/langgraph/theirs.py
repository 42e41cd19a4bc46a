"""The three steps in LangGraph: ``python -m benchmarks.langgraph.theirs DATABASE MODEL NAME...``.

As its documentation has it: the asynchronous PostgreSQL checkpointer on a pool of connections, ``durability="sync"``,
the threads side by side in one event loop. The same program starts the threads and, started again, goes on with what
is left: that part (``go_on``) is not the library's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.langgraph.asking import asking

STEPS = ("plan", "store", "api")
QUESTION = "Write it.\n" * 200
POOL = 20
Ask = Callable[[str, str], Awaitable[str]]


class State(TypedDict, total=False):
    """What a thread carries: its name, and the answer of each step."""

    name: str
    plan: str
    store: str
    api: str


def graph_of(ask: Ask) -> StateGraph[Any, Any, Any, Any]:
    """Three steps, one after the other."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for step in STEPS:
        graph.add_node(step, _node(ask, step))
    for before, after in zip((START, *STEPS), (*STEPS, END), strict=True):
        graph.add_edge(before, after)
    return graph


def _node(ask: Ask, step: str) -> Any:
    async def node(state: State) -> dict[str, str]:
        # The key is made by hand: a node that was under way when its process died runs again from its first line.
        return {step: await ask(f"{state['name']}/{step}", QUESTION)}

    return node


async def go_on(graph: Any, name: str) -> None:
    """Start a thread, or go on with it where its last checkpoint is; nothing for one that has ended."""
    config = {"configurable": {"thread_id": name}}
    found = await graph.aget_state(config)
    if not found.values:
        await graph.ainvoke({"name": name}, config, durability="sync")
    elif found.next:
        await graph.ainvoke(None, config, durability="sync")


async def main(database: str, model: str, names: Sequence[str]) -> None:
    """All of them to their ends. Raises LookupError for one that did not get there."""
    kept = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(database, max_size=POOL, kwargs=kept, open=False)
    async with pool, asking(model) as ask:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        graph = graph_of(ask).compile(checkpointer=saver)
        await asyncio.gather(*(go_on(graph, name) for name in names))
        for name in names:
            values = (await graph.aget_state({"configurable": {"thread_id": name}})).values
            if missing := [step for step in STEPS if step not in values]:
                raise LookupError(f"thread {name} has no {', '.join(missing)}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
