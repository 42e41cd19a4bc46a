"""What the configuration says of slots and turns reaches the model worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from adapters.cli.serving.providers import lobby, turnstile
from adapters.settings import Settings
from domain.flow.turns import Room

Make = Callable[..., Settings]
ONE = {"model": "openai/a", "base_url": "http://h/v1"}


def room(settings: Settings) -> Room:
    return turnstile(settings).room


def test_one_provider_may_have_every_slot_and_of_several_each_has_a_part(make_settings: Make) -> None:
    alone = make_settings(models={"coder": ONE, "planner": {**ONE, "model": "openai/b"}})
    several = make_settings(models={"coder": ONE, "planner": {"model": "anthropic/b"}})
    assert (room(alone).provider_share, room(several).provider_share) == (1.0, 0.75)


def test_slots_shares_and_fixed_limits_are_those_of_the_configuration(make_settings: Make) -> None:
    workers = {"model_slots": 8, "project_share": 0.25, "sandbox_slots": 3}
    settings = make_settings(models={"coder": {**ONE, "in_flight": 2}, "planner": ONE}, workers=workers)
    assert room(settings) == Room(slots=8, lobby=4, share=0.25, provider_share=1.0, most={"coder": 2})
    assert lobby(settings) == 4
    assert [settings.workers.slots(name) for name in ("saga", "workspace", "sandbox", "deploy")] == [20, 20, 3, 20]


@pytest.mark.parametrize("workers", [{"model_slots": 0}, {"project_share": 0}, {"project_share": 1.5}, {"slots": 3}])
def test_what_would_let_nobody_in_is_refused(make_settings: Make, workers: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_settings(workers=workers)
