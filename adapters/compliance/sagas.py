"""What every look at sagas must do. Subclass with a fixture ``stage`` whose workflows this suite begins and stops."""

from __future__ import annotations

import uuid
from typing import Protocol

import pytest

from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN, Sagas, Standing


class Stage(Protocol):
    """``sagas`` is what is tested; the others make what it looks at, and return when it is so."""

    sagas: Sagas

    async def begin(self, name: str) -> None: ...

    async def go_on_in_a_new_run(self, name: str) -> None: ...

    async def end(self, name: str, how: str) -> None:
        """``how`` is "completed", "failed", "terminated" or "cancelled"."""
        ...


def unused() -> str:
    """A name that no other test has."""
    return f"build-compliance-{uuid.uuid4().hex}"


class SagasCompliance:
    async def standing(self, stage: Stage, name: str) -> Standing:
        return (await stage.sagas.standings([name]))[name]

    async def test_a_workflow_runs_from_the_moment_it_was_started(self, stage: Stage) -> None:
        name = unused()
        await stage.begin(name)
        assert (await self.standing(stage, name)).state == RUNNING

    @pytest.mark.parametrize(
        ("how", "state"),
        [("completed", ENDED), ("failed", STOPPED), ("terminated", STOPPED), ("cancelled", STOPPED)],
    )
    async def test_a_closed_one_says_how_it_ended(self, stage: Stage, how: str, state: str) -> None:
        name = unused()
        await stage.begin(name)
        await stage.end(name, how)
        standing = await self.standing(stage, name)
        assert standing.state == state
        assert how == "completed" or how in standing.how

    async def test_the_newest_run_counts(self, stage: Stage) -> None:
        name = unused()
        await stage.begin(name)
        await stage.go_on_in_a_new_run(name)
        assert (await self.standing(stage, name)).state == RUNNING
        await stage.end(name, "terminated")
        await stage.begin(name)
        assert (await self.standing(stage, name)).state == RUNNING

    async def test_what_was_never_started_is_unknown_and_nothing_else(self, stage: Stage) -> None:
        assert (await self.standing(stage, unused())).state == UNKNOWN

    async def test_every_name_has_its_entry_also_twice_asked_and_many(self, stage: Stage) -> None:
        name = unused()
        await stage.begin(name)
        names = [unused() for _ in range(30)]
        standings = await stage.sagas.standings([name, *names, name])
        assert set(standings) == {name, *names}
        assert standings[name].state == RUNNING
        assert {standings[each].state for each in names} == {UNKNOWN}

    async def test_nothing_asked_is_nothing_answered(self, stage: Stage) -> None:
        assert dict(await stage.sagas.standings([])) == {}
