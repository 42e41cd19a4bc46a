"""The sandbox worker: model-written code runs from here, and nowhere else. No secret."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.cli.serving.part import Activities, Part, engine_of
from adapters.settings import Settings

if TYPE_CHECKING:
    from domain.build.project import Project


@asynccontextmanager
async def sandbox_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Set-ups, gates, artefact builds and integration tests, with the programs that each project's tests need."""
    from activities.delivery.artifacts import Artifacts
    from activities.delivery.integration import Integration
    from activities.gates import Gates
    from activities.sandboxed.bench import Bench
    from activities.sandboxed.environments import Environments
    from activities.sandboxed.manifests import Manifests
    from adapters.cli.house.home import at_home
    from adapters.cli.serving.seen import git_check, sandbox_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.environments import open_environments
    from adapters.environments.lists import known_packages
    from adapters.git.adapter import open_git
    from adapters.sandbox import open_sandbox
    from adapters.sandbox.toolchain import default_toolchain

    def toolchain(project: Project) -> tuple[Path, ...]:
        return tuple(map(Path, project.toolchain)) or default_toolchain(project.test, environment.get("PATH", ""))

    engine, blobs, git = engine_of(settings), blobs_of(settings), open_git(settings.state, common=settings.common)
    sandbox = open_sandbox(settings.sandbox.engine, environment)
    environments = open_environments(settings.common)
    bench = Bench(sandbox=sandbox, folder=settings.state / "work", toolchain=toolchain, environments=environments)
    manifests = Manifests(sources=git.sources, known=known_packages())
    setups = Environments(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench, manifests=manifests)
    gates = Gates(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    artifacts = Artifacts(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    integration = Integration(engine=engine, workspaces=git.workspaces, blobs=blobs, bench=bench)
    activities: Activities = [gates.run_gates, artifacts.build_artifact, integration.run_integration]
    activities += [setups.prepare_environment, gates.measure_base]
    with at_home(settings, "sandbox") as house:
        checks = {**git_check(environment), **sandbox_check(sandbox)}
        yield Part(suffix="-sandbox", activities=[*activities, *house], checks=checks)
