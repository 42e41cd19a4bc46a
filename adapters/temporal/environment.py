"""What each worker process may see of our environment: provider keys only for models, deploy secrets only for
releases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

WORKERS = ("saga", "workspace", "model", "sandbox")
DEPLOY = "deploy"
"""Runs only where a project has a target."""

_EVERYBODY = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TMPDIR", "TZ", "XDG_*"),
    *("SSL_CERT_*", "REQUESTS_CA_BUNDLE", "PYTHON*", "MENDWORK_*", "TEMPORAL_*"),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_RESOURCE_ATTRIBUTES"),  # not its headers: they may hold a key
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
_MODEL = ("*_API_KEY", "*_API_BASE", "AWS_*", "AZURE_*", "GOOGLE_*", "VERTEX*", *_PROXIES)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NEVER_SHARED = ("MENDWORK_*_API_KEY",)
_STORE = ("MENDWORK_STORE", "MENDWORK_STORE_PASSWORD")
_WITH_THE_STORE = ("saga", "model")


def worker_environment(
    worker: str,
    environment: Mapping[str, str],
    *,
    key_names: Collection[str] = (),
    deploy_names: Collection[str] = (),
) -> dict[str, str]:
    """The variables that the worker class ``worker`` gets. ``key_names`` are those that the settings name as keys,
    ``deploy_names`` as secrets of releases."""

    def allowed(name: str) -> bool:
        if name in deploy_names or name in key_names:
            return name in {"model": key_names, DEPLOY: deploy_names}.get(worker, ())
        if name in _STORE:
            return worker in _WITH_THE_STORE
        if worker == "model":
            return _matches(name, _EVERYBODY) or _matches(name, _MODEL)
        if worker == "sandbox" and name in _PROXIES:
            return "@" not in environment[name]  # the way to the registries, but never a password
        return not _matches(name, _NEVER_SHARED) and _matches(name, _EVERYBODY)

    chosen = {name: value for name, value in environment.items() if allowed(name)}
    return chosen | _past_the_proxy(chosen)


def _past_the_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """What keeps calls of a model on this machine from going to the proxy; nothing where there is no proxy."""
    if not any(name.lower().endswith("_proxy") for name in environment):
        return {}
    spared = [environment.get("NO_PROXY", "") or environment.get("no_proxy", ""), *_LOOPBACK]
    joined = ",".join(part for part in spared if part)
    return {"NO_PROXY": joined, "no_proxy": joined}


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
