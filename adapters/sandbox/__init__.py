"""Sandboxes by engine."""

from collections.abc import Mapping

from adapters.registry import resolve
from domain.ports.sandbox import Sandbox

REGISTRY = {
    "bubblewrap": "adapters.sandbox.bubblewrap:Bubblewrap",
    "mount": "adapters.sandbox.mount:Mount",
}


def open_sandbox(engine: str, environment: Mapping[str, str] | None = None) -> Sandbox:
    """The sandbox that a configuration names. ``environment`` is this process's: what it says of proxies and
    certificates counts for runs that may reach hosts. Raises UnknownName, InvalidInput."""
    factory = resolve(REGISTRY, "sandbox", engine)
    if engine == "bubblewrap":
        from adapters.sandbox.ways.abroad import abroad

        closed: Sandbox = factory(abroad=abroad(environment or {}))
        return closed
    sandbox: Sandbox = factory()
    return sandbox


def warnings(engine: str) -> tuple[str, ...]:
    """What people are told at the start about an engine that isolates less than bubblewrap; () for that one."""
    return () if engine == "bubblewrap" else tuple(open_sandbox(engine).missing().values())
