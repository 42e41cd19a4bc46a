"""The deploy worker: all that touches targets, and the load that measures them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from adapters.cli.serving.part import Activities, Part, engine_of
from adapters.settings import Settings


@asynccontextmanager
async def deploy_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Holds the secrets that the projects name, out of ``environment``; no repository, no provider key.

    Raises UnknownName for a target.
    """
    from activities.delivery.deploys import Deploys
    from activities.delivery.measuring import Measuring
    from adapters.cli.serving.seen import target_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.kpi import open_load
    from adapters.target import open_target

    engine = engine_of(settings)
    wanted = [project.delivery for project in engine.projects.values() if project.delivery is not None]
    targets = {name: open_target(settings.state, name=name) for name in sorted({each.target for each in wanted})}
    names = {name for each in wanted for name in each.secrets}
    secrets = {name: environment[name] for name in names if name in environment}
    deploys = Deploys(engine=engine, targets=targets, blobs=blobs_of(settings), secrets=secrets)
    activities: Activities = [deploys.snapshot_site, deploys.start_unit, deploys.find_unit]
    activities += [deploys.switch_traffic, deploys.prove_live, deploys.restore_traffic, deploys.retire_unit]
    activities += [deploys.run_step, deploys.undo_step, deploys.prune_units, Measuring(load=open_load()).measure_window]
    yield Part(suffix="-deploy", activities=activities, checks=target_check(settings))
