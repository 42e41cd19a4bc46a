"""Histories as files: one event a line, without what a replay never reads, and no two that take the same steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

NOISE = frozenset({"identity", "taskId", "requestId", "workerVersion", "meteringMetadata"})
"""Who recorded it, and what only the server knows."""
TELLING = ("activityType", "workflowType", "signalName", "markerName", "acceptedRequest", "failure")
"""What, beside its type, makes an event another step."""


class Writer:
    """Writes histories into ``folder``, which has to be empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps: set[tuple[str, ...]] = set()

    def __call__(self, history: WorkflowHistory, name: str) -> None:
        """As ``name``; a task's or a watch's that takes the steps of one that is there already is left out."""
        events = [slim(event) for event in json.loads(history.to_json())["events"]]
        steps = tuple(map(step, events))
        if steps in self._steps and ("-task-" in name or name.endswith("-watch")):
            return
        self._steps.add(steps)
        (self._folder / f"{name}.json").write_text("".join(lines(events)))


def slim(value: Any) -> Any:
    """Without the noise, at any depth."""
    if isinstance(value, Mapping):
        return {key: slim(each) for key, each in value.items() if key not in NOISE}
    return [slim(each) for each in value] if isinstance(value, list) else value


def step(event: Mapping[str, Any]) -> str:
    """What a replay has to come to at this event, without names, times and contents."""
    attributes: Mapping[str, Any] = next((value for key, value in event.items() if key.endswith("EventAttributes")), {})
    told = {key: _word(attributes[key]) for key in TELLING if key in attributes}
    return json.dumps([event["eventType"], told], sort_keys=True)


def lines(events: list[Any]) -> Iterator[str]:
    """The file's text."""
    last = len(events) - 1
    yield '{"events": [\n'
    for number, event in enumerate(events):
        yield json.dumps(event, separators=(",", ":")) + ("\n" if number == last else ",\n")
    yield "]}\n"


def _word(value: Any) -> Any:
    """An activity's name, a failure's type; not the words of a message."""
    if not isinstance(value, Mapping):
        return value
    named = value.get("name") or value.get("applicationFailureInfo", {}).get("type")
    return named or value.get("input", {}).get("name") or sorted(value)
