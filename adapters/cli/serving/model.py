"""The model worker: the only one that knows provider keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from adapters.cli.serving.part import Part
from adapters.settings import Settings


@asynccontextmanager
async def model_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Calls of models, their record and their money."""
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
