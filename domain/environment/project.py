"""How a project's dependencies are set up: one command, one folder, the registries that it may reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """``command`` is run in the sandbox, in a copy of the checkout, and leaves the dependencies in ``folder`` (relative
    to the checkout), which later runs see read-only at the same place.

    ``registries`` are the only hosts that it may reach, as "name" or "name:port" (443 where none is given).
    ``packages`` are names beyond the manifest's that may be installed without asking. ``inputs`` are the files that
    decide what is installed (manifests and lock files; a name without "/" stands for it in every folder).
    """

    command: tuple[str, ...]
    folder: str
    registries: tuple[str, ...]
    packages: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
