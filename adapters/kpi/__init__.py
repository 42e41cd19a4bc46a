"""Synthetic load by name."""

from adapters.registry import resolve
from domain.errors import TargetMissing
from domain.ports.load import Load

LOADS = {
    "http": "adapters.kpi.http:open_http",
    "memory": "adapters.kpi.memory:open_memory",
}


def open_load(name: str = "http") -> Load:
    """Nothing is connected yet. Raises UnknownName; TargetMissing where the HTTP client is not installed."""
    try:
        load: Load = resolve(LOADS, "load", name)()
    except ModuleNotFoundError as error:
        raise TargetMissing(
            f"{error.name} is not installed: deliveries need the extra 'deploy' (uv sync --extra deploy)"
        ) from error
    return load
