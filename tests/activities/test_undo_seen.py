"""An undo that says it worked is looked at from outside: what is still there, or still answers, was not undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.delivery import looking
from adapters.target.memory import MemoryTarget, MemoryTraffic, MemoryUnits
from domain.kpi.probe import Probe
from domain.ports.target import Answered, Site, Unit
from tests.activities.test_deploys import Scene, undo


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that finds something else is over soon."""
    monkeypatch.setattr(looking, "PROOF_SECONDS", 0.1)
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.01)


class StuckTraffic(MemoryTraffic):
    """Goes where it is led, while users are answered ``always`` the same."""

    def __init__(self, units: MemoryUnits, *, always: Answered) -> None:
        super().__init__(units)
        self._always = always

    async def health(self, site: Site, probe: Probe) -> Answered:
        return self._always


class StayingUnits(MemoryUnits):
    """A removal says whether it is ``done``; the unit ``stays`` or goes whatever it says."""

    def __init__(self, *, done: bool, stays: bool) -> None:
        super().__init__()
        self._done, self._stays = done, stays

    async def remove(self, unit: Unit, *, drain: float = 0.0) -> bool:
        if not self._stays:
            await super().remove(unit)
        return self._done


class Broken(MemoryTarget):
    """A target of such parts."""

    def __init__(self, units: MemoryUnits, traffic: MemoryTraffic) -> None:
        self._units, self._traffic = units, traffic


@pytest.mark.parametrize(
    ("to", "answered", "back"),
    [
        (1, Answered(ok=True, release=2, status=200), False),  # the new release, still
        (1, Answered(ok=False, release=1, status=500), False),  # the old one, and it is not well
        (1, Answered(ok=False, sentence="connection refused"), False),  # nobody
        (1, Answered(ok=True, release=1, status=200), True),
        (0, Answered(ok=True, release=2, status=200), False),  # a site that was to be closed
        (0, Answered(ok=True, status=200), False),  # somebody answers there who is no release of ours
        (0, Answered(ok=False), True),
    ],
)
async def test_traffic_is_back_only_when_users_are_answered_by_the_release_of_before(
    tmp_path: Path, to: int, answered: Answered, back: bool
) -> None:
    units = MemoryUnits()
    scene = Scene(tmp_path, target=Broken(units, StuckTraffic(units, always=answered)))
    for release in (1, 2):
        await scene.start(release)
    await scene.switch(2, expected=0)
    assert await scene.deploys.restore_traffic(undo(2, to=to)) is back
    assert await scene.live() == to  # it was tried, whatever came of it


@pytest.mark.parametrize(
    ("done", "stays", "gone"), [(True, True, False), (False, True, False), (False, False, False), (True, False, True)]
)
async def test_a_unit_is_gone_only_when_its_removal_says_so_and_nothing_of_it_is_found(
    tmp_path: Path, done: bool, stays: bool, gone: bool
) -> None:
    units = StayingUnits(done=done, stays=stays)
    scene = Scene(tmp_path, target=Broken(units, MemoryTraffic(units)))
    await scene.start(2)
    assert await scene.deploys.retire_unit(undo(2)) is gone
