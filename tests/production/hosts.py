"""Worker hosts: one process for each class, as docker-compose.yml starts it, with a state and secrets of its own.

A host sees its own folder, the shared one and the repositories, and of other hosts' disks nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.workshop import wait_for
from tests.production.compose import OURS, services
from tests.production.network import Host, hidden
from tests.production.site import Site
from tests.spawning import printed, spawned

CLASSES = OURS[:4]
"""Nothing is released here."""
_READY = """
import sys, time, urllib.request
wanted, until = set(sys.argv[1:]), time.monotonic() + 120
while wanted and time.monotonic() < until:
    for url in sorted(wanted):
        try:
            urllib.request.urlopen(url, timeout=10)
            wanted.discard(url)
        except OSError:
            time.sleep(0.2)
sys.exit(f"not ready: {sorted(wanted)}" if wanted else 0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHost:
    """``folder`` holds its mendwork.toml, its state and its secrets; ``others`` are what it must not see."""

    name: str
    host: Host
    folder: Path
    others: Sequence[Path]
    site: Site
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "MENDWORK_CONFIG": str(self.folder / "mendwork.toml"),
            "TEMPORAL_CONFIG_FILE": str(self.folder / "no-profiles.toml"),
        }

    def inside(self, *argv: object) -> list[str]:
        return self.host.inside(*hidden(self.others, *argv))

    def mendwork(self, *arguments: str, stdin: str = "") -> str:
        """What the command line prints on this host, with the store's password as people have it."""
        argv = self.inside(sys.executable, "-P", "-m", "starter", *arguments)
        given = {**self.environment, "MENDWORK_SECRETS": str(self.folder / "secrets" / "saga")}
        return printed(argv, environment=given, folder=self.folder, stdin=stdin)

    def pids(self) -> dict[int, str]:
        """The class of each of its processes."""
        return {process.pid: name for name, process in self.processes.items()}

    def lose(self) -> None:
        """kill -9 everything at once: the machine is gone."""
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
        for process in self.processes.values():
            process.wait()

    def wait_until_ready(self) -> None:
        """As the health checks of docker-compose.yml ask."""
        urls = [services()[name]["environment"]["READY"] for name in CLASSES]
        asks = subprocess.Popen(self.inside(sys.executable, "-I", "-c", _READY, *urls), stderr=subprocess.PIPE)
        try:
            wait_for(lambda: asks.poll() is not None or self.ended(), seconds=130, why="any answer")
            logs = "".join(f"\n== {path.name}\n{path.read_text()[-1500:]}" for path in self.folder.glob("*.log"))
            assert asks.poll() == 0, f"{self.name}: not ready, {self.ended()} ended{logs}"
        finally:
            asks.kill()
            asks.communicate()

    def ended(self) -> list[str]:
        """The classes whose process is gone."""
        return [name for name, process in self.processes.items() if process.poll() is not None]


@contextlib.contextmanager
def working(hosts: Mapping[str, WorkerHost]) -> Iterator[None]:
    """All classes on all hosts, ready."""
    with contextlib.ExitStack() as stack:
        for each in hosts.values():
            for name in CLASSES:
                argv = each.inside(sys.executable, "-P", "-m", "worker", name)
                given = {**each.environment, "MENDWORK_SECRETS": str(_secrets(each, name))}
                log = each.folder / f"{name}.log"
                each.processes[name] = stack.enter_context(
                    spawned(argv, log=log, folder=each.folder, environment=given)
                )
        for each in hosts.values():
            each.wait_until_ready()
        try:
            yield
        finally:
            for each in hosts.values():  # all at once; one after the other would take the grace of each
                for process in each.processes.values():
                    process.terminate()


def _secrets(host: WorkerHost, name: str) -> Path:
    """What docker-compose.yml would mount for the class."""
    folder = host.folder / "secrets" / name
    folder.mkdir(parents=True, exist_ok=True)
    for each in services()[name]["secrets"]:
        place = folder / each.get("target", each["source"])
        shutil.copy(host.site.secrets / each["source"], place)
    for key in host.site.secrets.glob("MENDWORK_BLOBS__*"):  # with two hosts there is a bucket, which has a key
        shutil.copy(key, folder)
    return folder


@contextlib.contextmanager
def providing(host: WorkerHost, *, answers: Path, bill: Path, port: int) -> Iterator[None]:
    """The scripted provider, on the host's own loopback."""
    argv = [sys.executable, "-P", "-m", "adapters.models.scripted"]
    argv += ["--answers", str(answers), "--bill", str(bill), "--port", str(port), "--require-key", "PROVIDER_API_KEY"]
    log = host.folder / "scripted.log"
    given = {**host.environment, "PROVIDER_API_KEY": (host.site.secrets / "provider_api_key").read_text()}
    with spawned(host.host.inside(*argv), log=log, folder=host.folder, environment=given):
        wait_for(lambda: log.read_text().startswith("{"), why=f"the provider of {host.name}")
        yield


def done_by(site: Site, hosts: Mapping[str, WorkerHost], workflow: str) -> dict[str, set[str]]:
    """Who completed anything of a workflow and its children: host → classes, by the identities in its history."""
    owners = {pid: (host.name, part) for host in hosts.values() for pid, part in host.pids().items()}
    found: dict[str, set[str]] = {}
    shown = json.loads(site.ask_temporal("workflow", "show", "--workflow-id", workflow, "--output", "json"))
    for event in shown["events"]:
        for attributes in event.values():
            if isinstance(attributes, dict) and "identity" in attributes and "scheduledEventId" in attributes:
                pid = attributes["identity"].partition("@")[0]
                if pid.isdigit() and int(pid) in owners:
                    name, part = owners[int(pid)]
                    found.setdefault(name, set()).add(part)
    return found


def listed(site: Site, query: str) -> list[dict[str, Any]]:
    """``temporal workflow list``."""
    rows: list[dict[str, Any]] = json.loads(
        site.ask_temporal("workflow", "list", "--query", query, "--output", "json") or "[]"
    )
    return rows
