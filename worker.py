"""The composition root: settings → adapters → activities → one Temporal worker of one secret class.

``python -m worker saga|workspace|model|sandbox|deploy``. One process per class: the model worker holds provider keys
and sees no repository, the sandbox worker runs model-written code and holds no secret, the workspace worker renders
prompts, the deploy worker alone touches targets and holds the secrets of releases.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.settings import Settings, load_settings
from domain.errors import InvalidInput, MendworkError, UnknownName

if TYPE_CHECKING:
    from temporalio.worker import Interceptor

    from activities.intake import Engine
    from adapters.telemetry.health import Check
    from domain.build.project import Project

GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one worker serves: its task queue's suffix, its activities and workflows, how many activities may be
    ``waiting`` beside those that work, and what /readyz asks of it alone."""

    suffix: str
    activities: Sequence[Callable[..., Any]]
    workflows: Sequence[type] = ()
    waiting: int = 0
    checks: Mapping[str, Check] = field(default_factory=dict)


@asynccontextmanager
async def saga_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Workflows, and what reads and writes the store beside them."""
    from activities.accounts.baselines import Baselines
    from activities.accounts.forecasting import Forecasting
    from activities.accounts.money import Money
    from activities.delivery.lanes import Lanes
    from activities.delivery.releases import ReleaseBook
    from activities.records import Records
    from activities.repository.snapshots import SnapshotBook
    from activities.sweeping import Sweeping
    from adapters.cli.house.home import beside_the_store
    from adapters.cli.serving.seen import store_check
    from adapters.cli.upgrade.deploying import served
    from adapters.store import open_store
    from adapters.telemetry.subject import tell_phase
    from adapters.temporal.attributes import ensure_attributes
    from adapters.temporal.connect import connect
    from adapters.temporal.delivery.lanes import TemporalLanes
    from adapters.temporal.namespace.schedule import ensure_housekeeper, ensure_sweeper
    from adapters.temporal.sagas import TemporalSagas

    async with await open_store(settings.store_url) as store:
        client = await connect(settings, environment)
        await ensure_attributes(client)
        await ensure_sweeper(client, settings)
        await ensure_housekeeper(client, settings)
        baselines = Baselines(events=store.events, builds=store.builds, told=tell_phase)
        records = Records(events=store.events, undo=store.undo, baselines=baselines)
        money = Money(ledger=store.ledger, places=store.places)
        sagas = TemporalSagas(client)
        sweeping = Sweeping(store=store, sagas=sagas)
        book = ReleaseBook(releases=store.releases)
        queue = settings.temporal.task_queue
        lanes = Lanes(lanes=TemporalLanes(client, task_queue=queue), sagas=sagas, releases=store.releases)
        activities: list[Callable[..., Any]] = [records.record_events, records.register_undo, records.close_undo]
        activities += [money.count_spent, money.take_place, money.give_place, money.release_build]
        activities += [sweeping.find_orphans, sweeping.examine_build, sweeping.expire_holds]
        activities += [book.open_release, book.record_release, book.find_release, book.count_past]
        activities += [lanes.join_lane, lanes.look_at_holder, lanes.recall_releases]
        activities.append(SnapshotBook(store=store, sagas=sagas).find_snapshot)
        activities.append(Forecasting(store=store, queue=queue, engine=settings.sandbox.engine).forecast_build)
        activities += beside_the_store(settings, store)
        workflows = served(settings, environment)
        yield Part(suffix="", activities=activities, workflows=workflows, checks=store_check(store))


@asynccontextmanager
async def workspace_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Git, prompts and plans: no key, no model-written code runs here."""
    from activities.delivery.admission import Admission
    from activities.intake import Intake
    from activities.packets import Packets
    from activities.planning import Planning
    from activities.prompts import Prompts
    from activities.repository.changes import Changes
    from activities.repository.landing import Landings
    from activities.repository.merging import Merging
    from activities.repository.snapshots import Snapshots
    from activities.reviewing import Reviewing
    from adapters.cli.house.home import at_home
    from adapters.cli.serving.seen import git_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.code import open_code
    from adapters.git.adapter import open_git
    from adapters.prompts.jinja import JinjaPrompts
    from adapters.schemas import open_schemas

    engine, blobs, git = _engine(settings), blobs_of(settings), open_git(settings.state, common=settings.common)
    mirrors, sources = git.mirrors, git.sources
    intake = Intake(engine=engine, mirrors=mirrors, blobs=blobs)
    code = open_code(settings.state)
    prompts = Prompts(engine=engine, sources=sources, templates=JinjaPrompts(), blobs=blobs, code=code)
    changes = Changes(engine=engine, workspaces=git.workspaces, mirrors=mirrors, sources=sources, blobs=blobs)
    landings = Landings(engine=engine, landing=git.landing, mirrors=mirrors, sources=sources, blobs=blobs)
    merging = Merging(engine=engine, merges=git.merges, sources=sources, blobs=blobs)
    planning = Planning(blobs=blobs, schemas=open_schemas())
    admission = Admission(engine=engine, mirrors=mirrors, sources=sources, merges=git.merges)
    activities: list[Callable[..., Any]] = [intake.admit_build, intake.fetch_base]
    activities += [prompts.render_plan_prompt, prompts.render_change_prompt, prompts.render_again_prompt]
    activities += [prompts.render_review_prompt, Reviewing(blobs=blobs).check_review]
    activities += [planning.check_plan, planning.adopt_plan, Packets(sources=sources, blobs=blobs).pack]
    activities += [changes.apply_change, changes.advance_head]
    activities += [merging.rebase_commits, merging.take_commit, merging.fetch_target]
    activities += [landings.land_result, landings.retract_result, landings.forget_build]
    activities += [landings.forward_target, landings.rewind_target]
    activities += [admission.admit_delivery, admission.pin_commit, admission.assess_change]
    snapshots = Snapshots(engine=engine, pins=mirrors, blobs=blobs, models=tuple(settings.models))
    activities += [snapshots.pin_snapshot, snapshots.restore_snapshot]
    with at_home(settings, "workspace") as house:
        yield Part(suffix="-workspace", activities=[*activities, *house], checks=git_check(environment))


@asynccontextmanager
async def model_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """The only part that knows provider keys."""
    from activities.models import Models
    from adapters.cli.serving.providers import endpoints, lobby, turnstile
    from adapters.cli.serving.seen import store_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.models import open_model
    from adapters.schemas import open_schemas
    from adapters.store import open_store
    from adapters.telemetry.calls import WatchedModel

    schemas = open_schemas()
    async with await open_store(settings.store_url) as store:
        model = WatchedModel(open_model(endpoints(settings, environment), schemas=schemas), names=settings.provided)
        models = Models(
            model=model, schemas=schemas, calls=store.calls, blobs=blobs_of(settings), turnstile=turnstile(settings)
        )
        checks = store_check(store)
        yield Part(suffix="-model", activities=[models.call_model], waiting=lobby(settings), checks=checks)


@asynccontextmanager
async def sandbox_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Model-written code runs from here, and nowhere else."""
    from activities.delivery.artifacts import Artifacts
    from activities.delivery.integration import Integration
    from activities.gates import Gates
    from activities.sandboxed.bench import Bench
    from activities.sandboxed.environments import Environments
    from activities.sandboxed.manifests import Manifests
    from adapters.cli.house.home import at_home
    from adapters.cli.serving.seen import git_check, sandbox_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.environments import open_environments
    from adapters.environments.lists import known_packages
    from adapters.git.adapter import open_git
    from adapters.sandbox import open_sandbox
    from adapters.sandbox.toolchain import default_toolchain

    def toolchain(project: Project) -> tuple[Path, ...]:
        return tuple(map(Path, project.toolchain)) or default_toolchain(project.test, environment.get("PATH", ""))

    engine, blobs, git = _engine(settings), blobs_of(settings), open_git(settings.state, common=settings.common)
    sandbox = open_sandbox(settings.sandbox.engine, environment)
    environments = open_environments(settings.common)
    bench = Bench(sandbox=sandbox, folder=settings.state / "work", toolchain=toolchain, environments=environments)
    manifests = Manifests(sources=git.sources, known=known_packages())
    setups = Environments(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench, manifests=manifests)
    gates = Gates(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    artifacts = Artifacts(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    integration = Integration(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    activities: list[Callable[..., Any]] = [gates.run_gates, artifacts.build_artifact, integration.run_integration]
    activities += [setups.prepare_environment, gates.measure_base]
    with at_home(settings, "sandbox") as house:
        checks = {**git_check(environment), **sandbox_check(sandbox)}
        yield Part(suffix="-sandbox", activities=[*activities, *house], checks=checks)


@asynccontextmanager
async def deploy_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """The only part that touches targets and holds the secrets of releases: no repository, no provider key."""
    from adapters.cli.serving.deploys import deploy_activities
    from adapters.cli.serving.seen import target_check

    activities = deploy_activities(settings, environment, engine=_engine(settings))
    yield Part(suffix="-deploy", activities=activities, checks=target_check(settings))


PARTS: Mapping[str, Callable[[Settings, Mapping[str, str]], AbstractAsyncContextManager[Part]]] = {
    "saga": saga_part,
    "workspace": workspace_part,
    "model": model_part,
    "sandbox": sandbox_part,
    "deploy": deploy_part,
}


async def run_worker(
    name: str, settings: Settings, *, environment: Mapping[str, str], interceptors: Sequence[Interceptor] = ()
) -> None:
    """Serve one part until SIGTERM or SIGINT, then let running activities end within the grace."""
    from temporalio.worker import Worker

    from activities.beating import BeatingInterceptor
    from adapters.cli.serving.seen import common_checks, shown
    from adapters.cli.upgrade.deploying import deployment
    from adapters.temporal.connect import connect

    if name not in PARTS:
        raise UnknownName.among("worker", name, PARTS)
    async with AsyncExitStack() as stack:
        seen = await stack.enter_async_context(shown(name, settings, environment))
        part = await stack.enter_async_context(PARTS[name](settings, environment))
        client = await connect(settings, environment)
        worker = Worker(
            client,
            task_queue=settings.temporal.task_queue + part.suffix,
            activities=part.activities,
            workflows=part.workflows,
            max_concurrent_activities=settings.workers.slots(name) + part.waiting,
            interceptors=[*seen.interceptors, BeatingInterceptor(), *interceptors],
            graceful_shutdown_timeout=timedelta(seconds=GRACE_SECONDS),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.timeouts.sticky),
            deployment_config=deployment(settings, environment),
        )
        async with worker:
            seen.ready({**part.checks, **common_checks(settings, client, worker)})
            logging.getLogger("mendwork").info("serving %s", worker.task_queue)
            await _stop_signal()


def _engine(settings: Settings) -> Engine:
    from activities.intake import Engine

    return Engine(
        projects=settings.allowlist(),
        reasoning=settings.chain("reasoning"),
        coding=settings.chain("coding"),
        validation=settings.chain("validation"),
        heartbeat=settings.timeouts.heartbeat,
    )


def _configured(name: str) -> tuple[Settings, Mapping[str, str]]:
    """The settings and the environment with the secrets of the class; read twice, since the settings name them."""
    from adapters.cli.serving.secrets import class_environment

    environment = class_environment(name, load_settings(start=Path.cwd(), environment=os.environ), os.environ)
    return load_settings(start=Path.cwd(), environment=environment), environment


async def _stop_signal() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def main(interceptors: Sequence[Interceptor] = ()) -> None:
    """Run the worker that the one argument names."""
    from adapters.telemetry.logs import configure_logs

    try:
        if len(sys.argv) != 2:
            raise InvalidInput(f"usage: python -m worker {'|'.join(PARTS)}")
        settings, environment = _configured(sys.argv[1])
        configure_logs(settings.telemetry.logs)
        asyncio.run(run_worker(sys.argv[1], settings, environment=environment, interceptors=interceptors))
    except MendworkError as error:
        sys.exit(f"mendwork worker: {error}")
    logging.shutdown()
    os._exit(0)  # the threads of Temporal's client may abort an interpreter that shuts down under them


if __name__ == "__main__":
    main()
