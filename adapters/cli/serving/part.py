"""What one worker serves, and what its activities know of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapters.settings import Settings

if TYPE_CHECKING:
    from activities.intake import Engine
    from adapters.telemetry.health import Check

Activities = list[Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one worker serves: its task queue's suffix, its activities and workflows, how many activities may be
    ``waiting`` beside those that work, and what /readyz asks of it alone."""

    suffix: str
    activities: Sequence[Callable[..., Any]]
    workflows: Sequence[type] = ()
    waiting: int = 0
    checks: Mapping[str, Check] = field(default_factory=dict)


def engine_of(settings: Settings) -> Engine:
    """The projects, and which models have which role."""
    from activities.intake import Engine

    return Engine(
        projects=settings.allowlist(),
        reasoning=settings.chain("reasoning"),
        coding=settings.chain("coding"),
        validation=settings.chain("validation"),
        heartbeat=settings.timeouts.heartbeat,
    )
