"""Activities of a delivery on the real sandbox, with checkouts made of a few texts."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from activities.gates import Bench
from activities.intake import Engine
from adapters.blobs.memory import MemoryBlobs
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.toolchain import default_toolchain
from domain.build.project import Limits, Project
from domain.delivery.project import Delivery
from domain.ports.sandbox import Sandbox
from domain.ports.workspace import Candidate, CommitRequest

PYTHON = sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """A new folder with the commit's files every time, removed afterwards, as the workspace port says."""

    root: Path
    commits: Mapping[str, Mapping[str, str]]
    links: Mapping[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def checkout(self, project: str, commit: str, *, label: str) -> AsyncIterator[Path]:
        folder = self.root / uuid4().hex
        folder.mkdir(parents=True)
        for path, text in self.commits[commit].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for path, target in self.links.items():
            (folder / path).symlink_to(target)
        yield folder

    async def commit(self, request: CommitRequest) -> Candidate:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What the activities are made of. ``missing`` are the limits that this machine cannot set."""

    engine: Engine
    workspaces: Checkouts
    blobs: MemoryBlobs
    bench: Bench
    missing: tuple[str, ...]
    label: str

    def left(self) -> list[Path]:
        """What runs left behind."""
        return list(self.bench.folder.iterdir()) if self.bench.folder.exists() else []


def opened(
    root: Path,
    delivery: Delivery | None,
    *,
    files: Mapping[str, str],
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
) -> Shop:
    """A project "calc" whose commit "c" has ``files``."""
    limits = limits or Limits(test_seconds=30.0, test_processes=200)
    project = Project(name="calc", repository="/r", branch="main", test=("true",), limits=limits, delivery=delivery)
    sandbox = sandbox or Bubblewrap()
    return Shop(
        engine=Engine(projects={"calc": project}, reasoning=("m",), coding=("m",), heartbeat=5),
        workspaces=Checkouts(root=root / "checkouts", commits={"c": files}),
        blobs=MemoryBlobs(),
        bench=Bench(
            sandbox=sandbox,
            folder=root / "work",
            toolchain=lambda project: default_toolchain(project.test, "/usr/bin:/bin"),
        ),
        missing=tuple(sorted(set(sandbox.missing()) & {"memory", "pids"})),
        label=f"saga-{uuid4().hex}/1",
    )
