"""A bare tree drawn from the histories of a build: the same children, activities, sizes and rounds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from benchmarks.engine.bare import Round, Step, Tree

OURS_ALONE = ("TemporalChangeVersion",)
"""Attributes that the SDK sets for what only ours does."""
BOOKKEEPING = (
    *("record_events", "register_undo", "close_undo", "pin_snapshot"),
    *("count_spent", "take_place", "give_place", "release_build"),
)
"""Activities that a program without a log, undo, snapshots, accounts and places would not have."""


async def draw(client: Client, build: str) -> Tree:
    """The tree that the finished build ``build`` was. Raises LookupError for a history that cannot be drawn."""
    history = await client.get_workflow_handle(build).fetch_history()
    events = list(history.events)
    ended = events[-1]
    if ended.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        raise LookupError(f"{build} did not end well in one run: {EventType.Name(ended.event_type)}")
    queue = events[0].workflow_execution_started_event_attributes.task_queue.name
    rounds = [await _round(client, group, _results(events), queue) for group in _groups(events)]
    result = ended.workflow_execution_completed_event_attributes.result
    return Tree(name=build, rounds=tuple(rounds), returned=_size(result))


def without(tree: Tree, names: Iterable[str]) -> Tree:
    """``tree`` without these activities and without search attributes; rounds in which nothing is left go too."""
    left = set(names)
    rounds = [
        Round(
            steps=tuple(step for step in each.steps if step.name not in left),
            children=tuple(without(child, left) for child in each.children),
        )
        for each in tree.rounds
    ]
    return replace(tree, rounds=tuple(each for each in rounds if each.steps or each.children))


def steps(tree: Tree) -> int:
    """Its activities, those of its children too."""
    return sum(len(each.steps) + sum(map(steps, each.children)) for each in tree.rounds)


def _groups(events: Iterable[HistoryEvent]) -> list[list[HistoryEvent]]:
    """The commands of each workflow task that had some which have to be waited for."""
    groups: dict[int, list[HistoryEvent]] = {}
    for event in events:
        for caused in (
            event.activity_task_scheduled_event_attributes,
            event.start_child_workflow_execution_initiated_event_attributes,
            event.upsert_workflow_search_attributes_event_attributes,
        ):
            if caused.workflow_task_completed_event_id:
                groups.setdefault(caused.workflow_task_completed_event_id, []).append(event)
    return list(groups.values())


async def _round(client: Client, group: list[HistoryEvent], results: dict[int, int], queue: str) -> Round:
    steps: list[Step] = []
    children: list[Tree] = []
    attributes: dict[str, tuple[str, Any]] = {}
    for event in group:
        scheduled = event.activity_task_scheduled_event_attributes
        started = event.start_child_workflow_execution_initiated_event_attributes
        if scheduled.activity_id:
            suffix = scheduled.task_queue.name.removeprefix(queue)
            steps.append(
                Step(
                    name=scheduled.activity_type.name,
                    queue=suffix,
                    given=_size(scheduled.input),
                    returned=results[event.event_id],
                )
            )
        elif started.workflow_id:
            children.append(await draw(client, started.workflow_id))
        else:
            told = event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
            attributes |= {name: _attribute(value) for name, value in told.items() if name not in OURS_ALONE}
    return Round(steps=tuple(steps), children=tuple(children), attributes=attributes)


def _results(events: Iterable[HistoryEvent]) -> dict[int, int]:
    """The bytes of each activity's result, by the event that scheduled it."""
    completed = (event.activity_task_completed_event_attributes for event in events)
    return {each.scheduled_event_id: _size(each.result) for each in completed if each.scheduled_event_id}


def _attribute(value: Payload) -> tuple[str, Any]:
    return value.metadata["type"].decode(), json.loads(value.data)


def _size(payloads: Payloads) -> int:
    return sum(len(payload.data) for payload in payloads.payloads)
