"""Judging a commit: read back by digest, checked for syntax, its tests run in the sandbox."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.documents import read_json
from activities.intake import Engine
from domain.build.project import Limits, Project
from domain.errors import DigestMismatch
from domain.ports.blobs import Blobs
from domain.ports.sandbox import Sandbox, SandboxResult, SandboxRun
from domain.ports.workspace import Workspaces

REPORT_BYTES = 12_000
"""What a model is shown of a red run: enough for several failures, small beside the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGatesInput:
    """``written`` is the digest of a JSON object from path to SHA-256 ("" for a base), ``base_ran`` the count of tests
    that may not shrink (None for a base, -1 where the runner cannot count)."""

    label: str
    project: str
    commit: str
    written: str = ""
    base_ran: int | None = None
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """``ran`` counts the tests that really ran (-1: cannot be counted); ``log`` is the digest of the whole output,
    ``report`` of what matters of a red one ("" when green); ``seconds`` is wall time."""

    green: bool
    reason: str
    ran: int
    log: str
    report: str
    seconds: float


class Gates:
    """Runs where model-written code runs, in a process without secrets."""

    def __init__(self, *, engine: Engine, workspaces: Workspaces, sandbox: Sandbox, blobs: Blobs, folder: Path) -> None:
        self._engine = engine
        self._workspaces = workspaces
        self._sandbox = sandbox
        self._blobs = blobs
        self._folder = folder

    @activity.defn
    async def run_gates(self, request: RunGatesInput) -> GateReport:
        raise NotImplementedError
