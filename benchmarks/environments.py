"""What it saves to use an environment again, beside setting it up.

``python -m benchmarks.environments`` makes a small Python project with one dependency, sets it up by pip in the sandbox
(the only step that asks a registry), asks for it again, and runs a command on top of it with and without the
environment, in turn; it prints medians in milliseconds. ``--plain`` sets up a virtual environment without packages,
which asks nobody.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.intake import Engine
from activities.sandboxed.bench import Bench, Job
from activities.sandboxed.environments import Environments, Prepared, PrepareInput
from activities.sandboxed.manifests import Manifests
from adapters.blobs import open_blobs
from adapters.environments import open_environments
from adapters.environments.lists import known_packages
from adapters.git.adapter import GitPorts, open_git
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.toolchain import default_toolchain
from benchmarks.files import git, make_repository
from benchmarks.ground.printing import say
from domain.build.project import Project
from domain.environment.project import Setup

_ROUNDS = 9
_PLAIN = "python3 -m venv --without-pip .venv"
_WITH = "python3 -m venv .venv && .venv/bin/python -m pip install --quiet -r requirements.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A project with a set-up, and what sets it up."""

    project: Project
    ports: GitPorts
    bench: Bench
    environments: Environments
    commit: str

    async def prepare(self) -> Prepared:
        """As a build asks for it."""
        request = PrepareInput(label="bench/setup", project="bench", commit=self.commit, allow_missing=self.lacking())
        return await ActivityEnvironment().run(self.environments.prepare_environment, request)

    async def run(self, key: str) -> None:
        """A run that does nothing, with the environment of ``key`` shown ("" for none)."""
        async with self.ports.workspaces.checkout("bench", self.commit, label="bench/run") as folder:
            argv = ("python3", "-c", "pass")
            job = Job(label="bench/run", argv=argv, folder=folder, dependencies=key, allow_missing=self.lacking())
            async with self.bench.ran(self.project, job) as ended:
                if ended.result.exit_code:
                    raise RuntimeError(ended.text)

    def lacking(self) -> tuple[str, ...]:
        """The limits that this machine cannot set."""
        return tuple(set(self.bench.sandbox.missing()) & {"memory", "pids"})


async def open_site(root: Path, *, plain: bool) -> Site:
    """The project, committed and fetched."""
    user = make_repository(root / "user", 20)
    (user / "requirements.txt").write_text("click==8.1.8\n")
    git(user, "add", "--all")
    git(user, "commit", "--quiet", "--message=requirements")
    setup = Setup(
        command=("sh", "-ec", _PLAIN if plain else _WITH),
        folder=".venv",
        registries=() if plain else ("pypi.org", "files.pythonhosted.org"),
        inputs=("requirements.txt",),
    )
    project = Project(name="bench", repository=str(user), branch="main", test=("python3", "-V"), setup=setup)
    ports, blobs = open_git(root / "state"), open_blobs(root / "state")
    bench = Bench(
        sandbox=Bubblewrap(),
        folder=root / "state" / "runs",
        toolchain=lambda project: default_toolchain(project.test, os.environ["PATH"]),
        environments=open_environments(root / "state"),
    )
    environments = Environments(
        engine=Engine(projects={"bench": project}, reasoning=("m",), coding=("m",), heartbeat=5),
        workspaces=ports.workspaces,
        blobs=blobs,
        bench=bench,
        manifests=Manifests(sources=ports.sources, known=known_packages()),
    )
    commit = await ports.mirrors.fetch_base(project, build="b1")
    return Site(project=project, ports=ports, bench=bench, environments=environments, commit=commit)


async def main(rounds: int, *, plain: bool) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name:
        site = await open_site(Path(name), plain=plain)
        began = time.perf_counter()
        made = await site.prepare()
        _row("built", time.perf_counter() - began, f"{made.bytes / 1e6:.1f} MB" if made.built else "it was there")
        again: list[float] = []
        bare: list[float] = []
        shown: list[float] = []
        for _ in range(rounds):
            began = time.perf_counter()
            kept = await site.prepare()
            again.append(time.perf_counter() - began)
            if kept.built or kept.key != made.key:
                raise RuntimeError("it was set up twice")
            for key, times in (("", bare), (made.key, shown)):
                began = time.perf_counter()
                await site.run(key)
                times.append(time.perf_counter() - began)
        _row("found again", statistics.median(again), f"{rounds} times")
        _row("a run without it", statistics.median(bare), "")
        _row("a run on top of it", statistics.median(shown), "")


def _row(what: str, seconds: float, more: str) -> None:
    say(f"{what:<20} {1000 * seconds:9.1f} ms  {more}".rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An environment found again, beside setting it up.")
    parser.add_argument("--plain", action="store_true", help="no packages: asks no registry")
    asyncio.run(main(_ROUNDS, plain=parser.parse_args().plain))
