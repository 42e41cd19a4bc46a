"""What the model worker calls: the providers that the configuration names, with their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from adapters.settings import Settings

if TYPE_CHECKING:
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
