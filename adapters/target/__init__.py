"""Deploy targets by name."""

from pathlib import Path

from adapters.registry import resolve
from domain.ports.target import Target

TARGETS = {
    "local": "adapters.target.local.adapter:open_local",
    "memory": "adapters.target.memory:open_memory",
}


def open_target(root: Path, *, name: str = "local") -> Target:
    """The target ``name``; ``root`` is the folder that Mendwork keeps its state in. Nothing is read, made or started
    yet. Raises UnknownName."""
    target: Target = resolve(TARGETS, "deploy target", name)(root)
    return target
