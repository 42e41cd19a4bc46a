"""What the model worker calls: the providers that the configuration names, with their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from adapters.settings import Settings

if TYPE_CHECKING:
    from activities.accounts.turns import Turnstile
    from adapters.models.endpoint import Endpoint


def endpoints(settings: Settings, environment: Mapping[str, str]) -> dict[str, Endpoint]:
    """Where each configured model is called; keys come from ``environment`` alone."""
    from adapters.models.endpoint import Endpoint

    return {
        name: Endpoint(
            name=name,
            model=model.model,
            base_url=model.base_url,
            api_key=environment.get(model.api_key_env, "") if model.api_key_env else "",
            key_name=model.api_key_env,
            structured=model.structured,
            pin=model.pin,
            price=model.price(),
        )
        for name, model in settings.models.items()
    }


def turnstile(settings: Settings) -> Turnstile:
    """Who may call when: no project keeps the others out, nor a provider where there are several."""
    from activities.accounts.turns import Turnstile
    from domain.flow.turns import Room

    providers = {name: model.provider for name, model in settings.models.items()}
    room = Room(
        slots=settings.workers.model_slots,
        lobby=lobby(settings),
        share=settings.workers.project_share,
        provider_share=settings.workers.provider_share if len(set(providers.values())) > 1 else 1.0,
        most={name: model.in_flight for name, model in settings.models.items() if model.in_flight},
    )
    return Turnstile(room, providers=providers)


def lobby(settings: Settings) -> int:
    """So many calls more than are made at once are taken from the queue, and wait for their turn here."""
    return max(2, settings.workers.model_slots // 2)
