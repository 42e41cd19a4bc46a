"""The saga worker: workflows, and what reads and writes the store beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters.cli.serving.part import Activities, Part
from adapters.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Client

    from adapters.temporal.sagas import TemporalSagas
    from domain.ports.store import Store


@asynccontextmanager
async def saga_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Its queue has no suffix; search attributes and schedules are there once it is open."""
    from adapters.cli.house.home import beside_the_store
    from adapters.cli.serving.seen import store_check
    from adapters.cli.upgrade.deploying import served
    from adapters.store import open_store
    from adapters.temporal.attributes import ensure_attributes
    from adapters.temporal.connect import connect
    from adapters.temporal.namespace.schedule import ensure_housekeeper, ensure_sweeper
    from adapters.temporal.sagas import TemporalSagas

    async with await open_store(settings.store_url) as store:
        client = await connect(settings, environment)
        await ensure_attributes(client)
        await ensure_sweeper(client, settings)
        await ensure_housekeeper(client, settings)
        sagas = TemporalSagas(client)
        activities = [*_of_builds(settings, store, sagas), *_of_releases(settings, store, client=client, sagas=sagas)]
        activities += beside_the_store(settings, store)
        workflows = served(settings, environment)
        yield Part(suffix="", activities=activities, workflows=workflows, checks=store_check(store))


def _of_builds(settings: Settings, store: Store, sagas: TemporalSagas) -> Activities:
    """The event log, undo records, accounts, places, snapshots, forecasts, and what the sweeper finds."""
    from activities.accounts.baselines import Baselines
    from activities.accounts.forecasting import Forecasting
    from activities.accounts.money import Money
    from activities.records import Records
    from activities.repository.snapshots import SnapshotBook
    from activities.sweeping import Sweeping
    from adapters.telemetry.subject import tell_phase

    baselines = Baselines(events=store.events, builds=store.builds, told=tell_phase)
    records = Records(events=store.events, undo=store.undo, baselines=baselines)
    money = Money(ledger=store.ledger, places=store.places)
    sweeping = Sweeping(store=store, sagas=sagas)
    queue, engine = settings.temporal.task_queue, settings.sandbox.engine
    activities: Activities = [records.record_events, records.register_undo, records.close_undo]
    activities += [money.count_spent, money.take_place, money.give_place, money.release_build]
    activities += [sweeping.find_orphans, sweeping.examine_build, sweeping.expire_holds]
    activities.append(SnapshotBook(store=store, sagas=sagas).find_snapshot)
    activities.append(Forecasting(store=store, queue=queue, engine=engine).forecast_build)
    return activities


def _of_releases(settings: Settings, store: Store, *, client: Client, sagas: TemporalSagas) -> Activities:
    """What is written down about releases, and the lanes that they wait in."""
    from activities.delivery.lanes import Lanes
    from activities.delivery.releases import ReleaseBook
    from adapters.temporal.delivery.lanes import TemporalLanes

    book = ReleaseBook(releases=store.releases)
    waiting = TemporalLanes(client, task_queue=settings.temporal.task_queue)
    lanes = Lanes(lanes=waiting, sagas=sagas, releases=store.releases)
    activities: Activities = [book.open_release, book.record_release, book.find_release, book.count_past]
    activities += [lanes.join_lane, lanes.look_at_holder, lanes.recall_releases]
    return activities
