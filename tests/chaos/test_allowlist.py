"""The allowlist is asked again by every activity that touches the outside, before it does anything else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import pytest_asyncio
from temporalio import activity
from temporalio.testing import ActivityEnvironment

import worker
from adapters.settings import Settings
from domain.errors import UnknownName
from tests.conftest import TemporalServer

Served = Mapping[str, Callable[..., Any]]

NEED_NOT_ASK: Mapping[str, tuple[str, ...]] = {
    "rows of our own store, by the name that the project had when it was admitted": (
        *("record_events", "register_undo", "close_undo", "count_spent", "take_place", "give_place", "release_build"),
        *("find_orphans", "examine_build", "expire_holds", "find_snapshot", "forecast_build"),
        *("open_release", "record_release", "find_release", "count_past", "recall_releases"),
    ),
    "workflows of our own: lanes and their holders": ("join_lane", "look_at_holder"),
    "what we keep of past projects too, and tidy": (
        *("sweep_blobs", "judge_pins", "list_pins", "drop_pins", "clear_folders", "sweep_environments"),
    ),
    "our own mirror and blobs: nothing of the user's is read or written": (
        *("rebase_commits", "advance_head", "assess_change", "pack"),
    ),
    "blobs alone": ("check_plan", "adopt_plan", "check_review", "render_again_prompt"),
    "a provider that the configuration names, with a prompt whose rendering asked": ("call_model",),
    "addresses on loopback that start_unit and find_unit gave, which ask": ("measure_window",),
}
"""Why an activity does not ask; a new one has to ask, or to say here why it need not."""

STRANGER = "taken-out"


@pytest_asyncio.fixture
async def served(
    temporal: TemporalServer, make_settings: Callable[..., Settings], environment: dict[str, str], tmp_path: Path
) -> AsyncIterator[Served]:
    """By name, every activity of every worker, with two projects in the allowlist."""
    projects = {name: {"repository": str(tmp_path / name), "test": ["pytest"]} for name in ("calc", "notes")}
    settings = make_settings(temporal={"task_queue": "allowlist"}, projects=projects)
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(part(settings, {**environment, **temporal.environment}))
            for part in worker.PARTS.values()
        ]
        every = [each for part in opened for each in part.activities]
        yield {str(activity._Definition.must_from_callable(each).name): each for each in every}


async def test_an_activity_that_touches_the_outside_refuses_a_project_that_is_not_in_the_allowlist(
    served: Served, tmp_path: Path
) -> None:
    excused = {name for names in NEED_NOT_ASK.values() for name in names}
    assert excused <= served.keys(), "a reason for an activity that nobody serves"
    before = everything_in(tmp_path)

    answers = {name: await answer_to_a_stranger(served[name]) for name in sorted(served.keys() - excused)}

    wrong = {name: answer for name, answer in answers.items() if f"project {STRANGER!r}" not in answer}
    assert wrong == {}
    assert everything_in(tmp_path) == before, "it was asked before anything was written"


def test_an_activity_has_one_reason_not_to_ask() -> None:
    reasons = [name for names in NEED_NOT_ASK.values() for name in names]
    assert len(reasons) == len(set(reasons))


async def answer_to_a_stranger(run: Callable[..., Any]) -> str:
    """The refusal's words, or what happened instead."""
    definition = activity._Definition.must_from_callable(run)
    wanted = (definition.arg_types or [])[0]
    try:
        returned = await ActivityEnvironment().run(run, filled(wanted))
    except UnknownName as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"returned {returned!r}"


def filled(shape: Any) -> Any:
    """An input of that shape that names the stranger, its fields without a default as empty as they can be."""
    hints = get_type_hints(shape)
    needed = [each for each in fields(shape) if not has_default(each)]
    values = {each.name: empty(hints[each.name]) for each in needed}
    return shape(**{**values, "project": STRANGER})


def empty(kind: Any) -> Any:
    """The least value of a type: "" for text, 0, (), {}, or a dataclass of such."""
    origin = get_origin(kind) or kind
    if is_dataclass(origin):
        return filled(origin)
    return {} if origin is Mapping else origin()


def has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


def everything_in(folder: Path) -> set[str]:
    return {f"{where}/{name}" for where, _, names in os.walk(folder) for name in names}
