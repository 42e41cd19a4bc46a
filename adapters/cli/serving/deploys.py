"""What the deploy worker runs: all that touches targets, and the load that measures them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from adapters.settings import Settings

if TYPE_CHECKING:
    from activities.intake import Engine


def deploy_activities(
    settings: Settings, environment: Mapping[str, str], *, engine: Engine
) -> list[Callable[..., Any]]:
    """With the secrets that the projects name, out of ``environment``. Raises UnknownName for a target."""
    from activities.delivery.deploys import Deploys
    from activities.delivery.measuring import Measuring
    from adapters.cli.serving.stored import blobs_of
    from adapters.kpi import open_load
    from adapters.target import open_target

    wanted = [project.delivery for project in engine.projects.values() if project.delivery is not None]
    targets = {name: open_target(settings.state, name=name) for name in sorted({each.target for each in wanted})}
    names = {name for each in wanted for name in each.secrets}
    secrets = {name: environment[name] for name in names if name in environment}
    deploys = Deploys(engine=engine, targets=targets, blobs=blobs_of(settings), secrets=secrets)
    activities: list[Callable[..., Any]] = [deploys.snapshot_site, deploys.start_unit, deploys.find_unit]
    activities += [deploys.switch_traffic, deploys.prove_live, deploys.restore_traffic, deploys.retire_unit]
    activities += [deploys.run_step, deploys.undo_step, deploys.prune_units, Measuring(load=open_load()).measure_window]
    return activities
