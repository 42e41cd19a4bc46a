"""A project whose commits are texts, with everything that sets it up, and a stand-in for a registry."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.intake import Engine
from activities.sandboxed.bench import Bench, Job
from activities.sandboxed.environments import Environments, Prepared, PrepareInput
from activities.sandboxed.manifests import Manifests
from adapters.blobs.memory import MemoryBlobs
from adapters.compliance.delivery.sandbox_ways import serving
from adapters.environments import open_environments
from adapters.environments.lists import known_packages
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.toolchain import default_toolchain
from domain.build.project import Limits, Project
from domain.environment.project import Setup
from domain.ports.kept.environments import KeptEnvironments
from domain.ports.workspace import TreeFile
from tests.activities.sandboxed import Checkouts

# Fetches what it is told to and keeps that in a folder: as little as a set-up can be.
FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    open("deps/" + url.rpartition("/")[2], "wb").write(urllib.request.urlopen(url, timeout=20).read())
"""
FILES = {"c": {"requirements.txt": "requests\n"}, "d": {"requirements.txt": "requests>1\n"}}


def simple(*urls: str, registries: Sequence[str] = ()) -> Setup:
    """A set-up that fetches ``urls`` into a folder."""
    script = 'mkdir deps; python3 -c "$0" "$@"'
    return Setup(command=("sh", "-ec", script, FETCH, *urls), folder="deps", registries=tuple(registries))


SLOW = Setup(command=("sh", "-ec", "mkdir deps; touch deps/half; echo up; sleep 60"), folder="deps", registries=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The sources of one commit at a time."""

    commits: Mapping[str, Mapping[str, str]]

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        return tuple(
            TreeFile(path=path, size=len(text), kind="file", oid=f"{commit}:{path}")
            for path, text in sorted(self.commits[commit].items())
        )

    async def read(self, project: str, commit: str, path: str) -> bytes:
        return self.commits[commit][path].encode()

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        named = {file.path: file.oid.partition(":")[0] for file in files}
        return {path: self.commits[commit][path].encode() for path, commit in named.items()}

    async def diff(self, project: str, old: str, new: str) -> str:
        raise NotImplementedError

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One project "calc", whose commits are texts, and everything that sets it up and runs on top of it."""

    project: Project
    bench: Bench
    kept: KeptEnvironments
    blobs: MemoryBlobs
    activities: Environments
    root: Path

    @classmethod
    def at(
        cls, root: Path, setup: Setup | None, commits: Mapping[str, Mapping[str, str]] = FILES, **limits: float
    ) -> Site:
        known = {"setup_seconds": 100.0, "test_processes": 500, "test_seconds": 60.0, **limits}
        project = Project(
            name="calc",
            repository="/r",
            branch="main",
            test=("true",),
            setup=setup,
            limits=Limits(**known),  # type: ignore[arg-type]
        )
        engine = Engine(projects={"calc": project}, reasoning=("m",), coding=("m",), heartbeat=5)
        kept, blobs = open_environments(root), MemoryBlobs()
        bench = Bench(
            sandbox=Bubblewrap(),
            folder=root / "work",
            toolchain=lambda project: default_toolchain(project.test, os.environ["PATH"]),
            environments=kept,
        )
        activities = Environments(
            engine=engine,
            workspaces=Checkouts(root=root / "checkouts", commits=commits),
            blobs=blobs,
            bench=bench,
            manifests=Manifests(sources=Reading(commits=commits), known=known_packages()),
        )
        return cls(project=project, bench=bench, kept=kept, blobs=blobs, activities=activities, root=root)

    async def prepare(self, commit: str, *, base: str = "", allowed: tuple[str, ...] = ()) -> Prepared:
        lacking = tuple(set(self.bench.sandbox.missing()) & {"memory", "pids"})
        request = PrepareInput(
            label=f"{self.root}/setup/1",
            project="calc",
            commit=commit,
            base=base,
            allowed=allowed,
            allow_missing=lacking,
        )
        return await ActivityEnvironment().run(self.activities.prepare_environment, request)

    async def run(self, prepared: Prepared, *argv: str, **files: str) -> str:
        """What a run on top of the environment prints, and its exit code."""
        folder = self.root / "run"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        lacking = tuple(set(self.bench.sandbox.missing()) & {"memory", "pids"})
        job = Job(label="run", argv=argv, folder=folder, dependencies=prepared.key, allow_missing=lacking)
        async with self.bench.ran(self.project, job) as ended:
            return f"{ended.text}{ended.result.exit_code}"

    def left(self) -> list[str]:
        """What is neither kept nor a checkout, which the real adapter removes."""
        folders = (self.root / "work", self.root / "environments")
        return [path.name for folder in folders if folder.exists() for path in folder.iterdir() if len(path.name) != 64]


class Registry(BaseHTTPRequestHandler):
    """Packages, and an index of one wheel for pip; "/missing" is not there."""

    def do_GET(self) -> None:
        body = self._body()
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        if self.path.endswith("/"):
            self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.path == "/simple/tiny/":
            return b'<html><body><a href="/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a></body></html>'
        if self.path.endswith(".whl"):
            return wheel()
        return b"" if "missing" in self.path else f"the content of {self.path}".encode()


def wheel() -> bytes:
    """A package "tiny" with a program of the same name."""
    files = {
        "tiny.py": b"def main():\n    print('tiny runs')\n",
        "tiny-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/entry_points.txt": b"[console_scripts]\ntiny = tiny:main\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=") for path, text in files.items()
    }
    record = "".join(f"{path},sha256={digest.decode()},{len(files[path])}\n" for path, digest in digests.items())
    files["tiny-1.0.dist-info/RECORD"] = f"{record}tiny-1.0.dist-info/RECORD,,\n".encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return content.getvalue()


@contextmanager
def registry() -> Iterator[int]:
    """The port of a stand-in on this machine's loopback."""
    with serving(Registry) as server:
        yield server.server_port
