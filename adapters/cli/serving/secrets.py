"""The secrets that one class of worker gets, out of the environment's folder of secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from adapters.settings import Settings
from adapters.settings.secrets import with_secrets
from adapters.temporal.environment import worker_environment


def class_environment(worker: str, settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with the secrets of the class ``worker``; the files of other classes are not opened, whoever put
    them there. Raises InvalidInput."""
    keys = {model.api_key_env for model in settings.models.values()} - {""}

    def wanted(names: Collection[str]) -> Collection[str]:
        given = dict.fromkeys(names, "")
        seen = worker_environment(worker, given, key_names=keys, deploy_names=settings.deploy_secrets)
        return [name for name in names if name in seen]

    return with_secrets(environment, wanted=wanted)
