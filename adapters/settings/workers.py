"""``[workers]``: how much one process of each class does at once, and what of it one project or provider may have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapters.settings.section import Section

Slots = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class WorkerSettings(Section):
    """``model_slots`` are calls of models, which only wait; ``sandbox_slots`` are test runs, which take a processor.

    Where there are several providers, each may have ``provider_share`` of the model slots that the others leave; a
    project may have ``project_share`` of what the other projects leave there. 1 is no limit.
    """

    saga_slots: Slots = 20
    workspace_slots: Slots = 20
    model_slots: Slots = 40
    sandbox_slots: Slots = 2
    deploy_slots: Slots = 20
    project_share: Share = 0.5
    provider_share: Share = 0.75

    def slots(self, name: str) -> int:
        """Of the worker class ``name``."""
        slots: int = getattr(self, f"{name}_slots")
        return slots
