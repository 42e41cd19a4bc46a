"""A tree of workflows and activities with nothing in them: what Temporal and its SDK alone cost.

One workflow plays any tree: round after round, it starts what the round holds and waits for it. Its one activity is
given a text and returns a text, of the sizes that the steps say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy, SearchAttributeKey

_KEYS = {
    "Keyword": SearchAttributeKey.for_keyword,
    "KeywordList": SearchAttributeKey.for_keyword_list,
    "Double": SearchAttributeKey.for_float,
    "Bool": SearchAttributeKey.for_bool,
}

_QUOTES = 2


@dataclass(frozen=True, kw_only=True)
class Step:
    """An activity: the end of its queue's name, and the bytes of its input and of its result."""

    name: str
    queue: str
    given: int
    returned: int


@dataclass(frozen=True, kw_only=True)
class Round:
    """What begins together; the next round begins when all of it has ended. ``attributes`` are search attributes by
    their names, each with its type and value."""

    steps: tuple[Step, ...] = ()
    children: tuple[Tree, ...] = ()
    attributes: Mapping[str, tuple[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A workflow: its rounds, and the bytes of its result."""

    name: str
    rounds: tuple[Round, ...]
    returned: int


def _text(size: int) -> str:
    """As JSON it has so many bytes, and at least its quotes."""
    return "x" * (size - _QUOTES)


@activity.defn
async def step(given: str) -> str:
    """The input begins with the bytes to return."""
    return _text(int(given.partition(" ")[0]))


@workflow.defn
class Bare:
    """Plays a tree."""

    @workflow.run
    async def run(self, tree: Tree) -> str:
        """Straight on: no decision, no signal, no compensation."""
        for number, each in enumerate(tree.rounds):
            if each.attributes:
                keys: dict[str, Any] = {name: _KEYS[kind](name) for name, (kind, _) in each.attributes.items()}
                workflow.upsert_search_attributes([keys[n].value_set(v) for n, (_, v) in each.attributes.items()])
            children = (self._child(child, number) for child in each.children)
            await asyncio.gather(*map(self._step, each.steps), *children)
        return _text(tree.returned)

    async def _step(self, each: Step) -> None:
        await workflow.execute_activity(
            step,
            f"{each.returned} ".ljust(each.given - _QUOTES, "x"),
            task_queue=workflow.info().task_queue + each.queue,
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )

    async def _child(self, tree: Tree, number: int) -> None:
        await workflow.execute_child_workflow(Bare.run, tree, id=f"{workflow.info().workflow_id}-{number}-{tree.name}")
