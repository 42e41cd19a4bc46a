"""A build's steps in LangGraph: ``python -m benchmarks.langgraph.theirs DATABASE MODEL NAME...``.

As its documentation has it: the asynchronous PostgreSQL checkpointer on a pool of connections, ``durability="sync"``,
the threads side by side in one event loop. The same program starts the threads and, started again, goes on with what
is left: that part (``go_on``) is not the library's.
"""

from __future__ import annotations

import asyncio
import operator
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.langgraph.asking import asking

MODEL = "call_model"
STEPS = (
    *("admit_build", "fetch_base", "measure_base", "render_plan_prompt", MODEL, "check_plan"),
    *(
        f"{task}/{step}"
        for task in ("store", "api")
        for step in ("render_change_prompt", MODEL, "apply_change", "run_gates", "advance_head")
    ),
    "land_result",
)
"""What a build does, in its order, without what it does for its own log, undo, money and snapshots."""
CALLS = tuple(step for step in STEPS if step.endswith(MODEL))
QUESTION = "Write it.\n" * 200
POOL = 20
Ask = Callable[[str, str], Awaitable[str]]


class State(TypedDict, total=False):
    """What a thread carries: its name, and what each step returned."""

    name: str
    done: Annotated[Mapping[str, str], operator.or_]


def graph_of(ask: Ask) -> StateGraph[Any, Any, Any, Any]:
    """The steps, one after the other."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for step in STEPS:
        graph.add_node(step, _node(ask, step))
    for before, after in zip((START, *STEPS), (*STEPS, END), strict=True):
        graph.add_edge(before, after)
    return graph


def _node(ask: Ask, step: str) -> Any:
    async def calling(state: State) -> dict[str, Any]:
        # The key is made by hand: a node that was under way when its process died runs again from its first line.
        return {"done": {step: await ask(f"{state['name']}/{step}", QUESTION)}}

    async def instant(state: State) -> dict[str, Any]:
        return {"done": {step: "done"}}

    return calling if step in CALLS else instant


async def go_on(graph: Any, name: str) -> None:
    """Start a thread, or go on with it where its last checkpoint is; nothing for one that has ended."""
    config = {"configurable": {"thread_id": name}, "recursion_limit": len(STEPS) + 1}
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
            done = (await graph.aget_state({"configurable": {"thread_id": name}})).values.get("done", {})
            if missing := [step for step in STEPS if step not in done]:
                raise LookupError(f"thread {name} has no {', '.join(missing)}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
