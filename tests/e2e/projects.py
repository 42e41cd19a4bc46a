"""Several projects on one running Mendwork, each with a repository, consents, limits and scripted answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from adapters.store import open_store
from domain.ports.store import Event
from tests.e2e.workshop import FILES, MENDWORK, UNASKED, Ran, Workshop, git, make_repository, wait_for

PREFIX = "task-"
"""What follows a ``-task-`` in a saga's id is the name of a task for the scripted provider: a project that is called
task-x gets answers that no other project does."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One project. ``answers`` are for its builds alone; ``consent`` and ``more`` (whole sections) are TOML."""

    name: str
    answers: Sequence[Mapping[str, Any]]
    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    consent: str = UNASKED
    more: str = ""
    builds: int = 1
    test: str = "python3 -m unittest"

    @property
    def project(self) -> str:
        return PREFIX + self.name

    def section(self) -> str:
        """Its part of mendwork.toml."""
        head = f'\n[projects.{self.project}]\nrepository = "{self.project}"\ntest = "{self.test}"\n'
        return head + self.consent + self.more.replace("[this.", f"[projects.{self.project}.")

    def script(self) -> Iterator[dict[str, Any]]:
        """Its answers as the provider's file has them, once for each build."""
        for number in range(1, self.builds + 1):
            for entry in self.answers:
                task = f"-task-{entry['task']}" if entry.get("task") else ""
                yield {**entry, "task": f"{self.name}-{number}{task}"}


@contextlib.contextmanager
def serving(
    folder: Path,
    scenes: Iterable[Scene],
    *,
    extra: str = "",
    environment: Mapping[str, str] | None = None,
    dev: Sequence[str] = (),
) -> Iterator[Workshop]:
    """Everything up, with a repository and a project for each scene; ``environment`` is added to every process's."""
    listed = list(scenes)
    at = Workshop(folder / "w")
    at.environment |= environment or {}
    answers = yaml.safe_load(at.answers.read_text()) + [entry for scene in listed for entry in scene.script()]
    at.answers.write_text(yaml.safe_dump(answers))
    for scene in listed:
        make_repository(at.root / scene.project, scene.files)
    with at.running(dev=dev, extra=extra + "".join(scene.section() for scene in listed)):
        yield at


def repository(at: Workshop, scene: Scene) -> Path:
    return at.root / scene.project


def begun(at: Workshop, scene: Scene, *options: str) -> str:
    """The name of a build that was started detached."""
    ran = at.mendwork("build", "spec.md", "--project", scene.project, "--detach", *options)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def built(at: Workshop, scenes: Sequence[Scene], *options: str) -> dict[str, Ran]:
    """Builds of all scenes at once, to their ends, by the scene's name."""
    with ThreadPoolExecutor(len(scenes)) as pool:
        ran = pool.map(
            lambda s: at.mendwork("build", "spec.md", "--project", s.project, *options, seconds=240.0), scenes
        )
        return dict(zip((scene.name for scene in scenes), ran, strict=True))


def started(at: Workshop, *arguments: str) -> subprocess.Popen[str]:
    """A command of Mendwork's that runs beside the test."""
    return subprocess.Popen(
        [*MENDWORK, *arguments],
        cwd=at.root,
        env=at.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def events(at: Workshop, build: str) -> list[Event]:
    """The build's whole log so far, in the order in which it was written."""
    return asyncio.run(_log(f"sqlite+aiosqlite:///{at.state / 'mendwork.db'}", build))


async def _log(url: str, build: str) -> list[Event]:
    async with await open_store(url) as store:
        return [event for _, event in await store.events.read(build)]


def told(at: Workshop, build: str, kind: str, **where: Any) -> list[dict[str, Any]]:
    """The data of the events of one kind, with their task; ``where`` restricts it."""
    found = [{**event.data, "of": event.task} for event in events(at, build) if event.kind == kind]
    return [data for data in found if all(data.get(name) == value for name, value in where.items())]


def waiting(
    at: Workshop, build: str, about: str = "change", *, beyond: str = "", seconds: float = 120.0
) -> dict[str, Any]:
    """What waits for a person about something, as ``mendwork pending --json`` prints it. ``beyond`` is an ask that was
    answered just now, of which the log may not know yet."""

    def asked() -> bool:
        closed = {beyond, *(data["id"] for data in told(at, build, "ask.closed"))}
        return any(data["id"] not in closed for data in told(at, build, "ask.opened", about=about))

    wait_for(asked, seconds=seconds, why=f"an ask about {about} of {build}")
    asks = json.loads(at.mendwork("pending", build, "--json").out)
    found: dict[str, Any] = next(ask for ask in asks if ask["about"] == about and ask["id"] != beyond)
    return found


def answered(at: Workshop, *arguments: str) -> dict[str, Any]:
    """How a build rules on what ``mendwork approve|reject|answer|…`` said, with the command's exit code as ``code``."""
    ran = at.mendwork(*arguments, "--json")
    assert ran.out, ran.err
    return {**json.loads(ran.out), "code": ran.code}


def result(at: Workshop, scene: Scene, build: str) -> dict[str, str]:
    """The files on the build's branch."""
    folder, branch = repository(at, scene), f"mendwork/{build}"
    names = git(folder, "ls-tree", "-r", "--name-only", branch).splitlines()
    return {name: git(folder, "show", f"{branch}:{name}") for name in names}


def task(name: str, *files: str, depends_on: Sequence[str] = ()) -> dict[str, Any]:
    """A task of a plan that declares ``files``."""
    return {
        "id": name,
        "title": f"Do {name}",
        "instructions": f"Do {name}.",
        "files": list(files),
        "tests": [],
        "depends_on": list(depends_on),
    }


def plan(*tasks: Mapping[str, Any], attempt: int = 1, **more: Any) -> dict[str, Any]:
    """The answer to the planning."""
    return {"role": "Plan", "attempt": attempt, "answer": {"summary": "a plan", "tasks": list(tasks)}, **more}


def change(name: str, attempt: int, *operations: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to one attempt of a task."""
    answer = {"summary": f"Do {name}", "operations": list(operations)}
    return {"role": "Change", "task": name, "attempt": attempt, "answer": answer, **more}


def create(path: str, content: str) -> dict[str, Any]:
    return {"action": "create", "path": path, "content": content, "edits": []}


def replace(path: str, content: str) -> dict[str, Any]:
    return {"action": "replace", "path": path, "content": content, "edits": []}


def edit(path: str, search: str, by: str) -> dict[str, Any]:
    return {"action": "edit", "path": path, "content": "", "edits": [{"search": search, "replace": by}]}


def checked(name: str, statement: str) -> dict[str, Any]:
    """A test that holds ``statement``."""
    body = f"import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        {statement}\n"
    return create(f"test_{name}.py", body)
