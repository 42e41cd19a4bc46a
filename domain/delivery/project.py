"""What a project says about its delivery: where its releases run, how they are tested, watched and weighed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.kpi.policy import WatchPolicy
from domain.kpi.probe import Probe
from domain.risk.policy import RiskPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the project's own, run once in the new release before traffic reaches it (a migration).

    ``kind`` is "read-only", "reversible" or "compensatable" (``undo`` is run to take it back) or "final": it cannot
    be taken back, and a person is always asked before.
    """

    name: str
    run: tuple[str, ...]
    kind: str
    undo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """``target`` names an adapter of the deploy target port.

    ``run`` serves on the port that the variable ``PORT`` names. ``build`` runs in the sandbox and leaves the artefact
    in the folder ``output``; without it the artefact is the commit's tree. ``integration`` runs in the sandbox against
    staging, whose address the variable ``MENDWORK_TARGET_URL`` names.

    ``port`` and ``staging_port`` are where the proxy listens (0: one is chosen and kept). ``environment`` and the
    values of ``secrets``, names of variables of the deploy worker, belong to a release and go back with it. Times in
    seconds; ``keep`` older releases stay to go back to.
    """

    target: str
    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    output: str = ""
    integration: tuple[str, ...] = ()
    port: int = 0
    staging_port: int = 0
    health: Probe = field(default_factory=Probe)
    start_seconds: float = 30.0
    drain_seconds: float = 10.0
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    keep: int = 3
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    risk: RiskPolicy = field(default_factory=RiskPolicy)
