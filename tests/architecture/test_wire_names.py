"""Names that Temporal's histories hold: a renamed one breaks builds that are under way.

After a wanted change: ``.venv/bin/python -m tests.architecture.test_wire_names > tests/architecture/wire_names.txt``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalio import activity, workflow

from domain import errors
from tests.architecture.sources import modules

PINNED = Path(__file__).with_name("wire_names.txt")


def wire_names() -> list[str]:
    """One line a name: its kind, then the name."""
    return sorted({*_workflow_names(), *_activity_names(), *_error_names()})


def workflow_definitions() -> Iterator[Any]:
    """Every workflow that a module of workflows/ defines."""
    for module in modules("workflows"):
        for _, found in inspect.getmembers(module, inspect.isclass):
            definition = workflow._Definition.from_class(found)
            if definition is not None and found.__module__ == module.__name__:
                yield definition


def _workflow_names() -> Iterator[str]:
    for definition in workflow_definitions():
        yield f"workflow {definition.name}"
        for kind, word in (("signals", "signal"), ("updates", "update"), ("queries", "query")):
            yield from (f"{word} {definition.name}.{each}" for each in getattr(definition, kind))


def _activity_names() -> Iterator[str]:
    for module in modules("activities"):
        owners = [module, *(found for _, found in inspect.getmembers(module, inspect.isclass))]
        for owner in owners:
            for _, found in inspect.getmembers(owner, inspect.isfunction):
                definition = activity._Definition.from_callable(found)
                if definition is not None:
                    yield f"activity {definition.name}"


def _error_names() -> Iterator[str]:
    for each, found in inspect.getmembers(errors, inspect.isclass):
        if issubclass(found, errors.MendworkError):
            yield f"error {each}"


def test_wire_names_are_the_pinned_ones() -> None:
    assert wire_names() == PINNED.read_text().splitlines()


if __name__ == "__main__":
    sys.stdout.write("\n".join(wire_names()) + "\n")
