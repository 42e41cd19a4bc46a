"""Set-up dependencies on disk, by key."""

from pathlib import Path

from adapters.registry import resolve
from domain.ports.kept.environments import KeptEnvironments

ENVIRONMENTS = {"files": "adapters.environments.files:FileEnvironments"}


def open_environments(root: Path, *, name: str = "files") -> KeptEnvironments:
    """The environments below ``root``, the folder that Mendwork keeps its state in. Nothing is read or made yet."""
    environments: KeptEnvironments = resolve(ENVIRONMENTS, "store of environments", name)(root / "environments")
    return environments
