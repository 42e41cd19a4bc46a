"""Shops: projects that serve, on one running Mendwork, and what a person sees of their deliveries from outside."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapters.target.local.adapter import open_local
from adapters.target.local.overview import stop_all
from tests.e2e import service
from tests.e2e.projects import told
from tests.e2e.workshop import DEV, Ran, Workshop, git, make_repository, wait_for

TOLD = "X-Mendwork-Release"
"""The header in which every answer of a release names its number."""


@dataclass(frozen=True, kw_only=True)
class Shop:
    """A project with a target. ``branches`` are commits beside main by their branch: files that they replace.
    ``delivery`` is its part of mendwork.toml, "" for a project without a target."""

    name: str
    branches: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    consent: str = "approve = []\nreview = false\n"
    delivery: str | None = None
    files: Mapping[str, str] = field(default_factory=lambda: service.FILES)

    def section(self) -> str:
        """Its part of mendwork.toml."""
        head = f'\n[projects.{self.name}]\nrepository = "{self.name}"\ntest = "python3 -m unittest"\n{self.consent}'
        return head + (service.section(self.name) if self.delivery is None else self.delivery)

    def make(self, root: Path) -> None:
        """Its repository; every branch is one commit after main."""
        folder = make_repository(root / self.name, self.files)
        for branch, files in self.branches.items():
            git(folder, "checkout", "-q", "-b", branch, "main")
            commit(folder, files)
        git(folder, "checkout", "-q", "main")


def commit(folder: Path, files: Mapping[str, str]) -> None:
    """One more commit where the repository's HEAD is."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")


@contextlib.contextmanager
def opened(root: Path, shops: Sequence[Shop], *, environment: Mapping[str, str] | None = None) -> Iterator[Workshop]:
    """Everything up, with ``shops`` for projects; afterwards nothing of it runs, nor of what it delivered.
    ``environment`` is added to every process's."""
    at = Workshop(root / "w", files=service.FILES)
    at.environment |= environment or {}
    for shop in shops:
        shop.make(at.root)
    with emptied(at), at.running(extra="".join(shop.section() for shop in shops)):
        yield at


@contextlib.contextmanager
def emptied(at: Workshop) -> Iterator[None]:
    """What was delivered outlives every process of Mendwork's by design: here it ends, however the test did."""
    try:
        yield
    finally:
        stop_all(open_local(at.state))


def delivered(at: Workshop, project: str, branch: str = "main", *options: str) -> Ran:
    """A delivery that is followed to its end, approved beforehand unless ``options`` are given."""
    return at.mendwork("deliver", branch, "--project", project, *(options or ("--yes",)), seconds=150)


def begun(at: Workshop, project: str, branch: str = "main", *options: str) -> str:
    """The name of a delivery that goes on by itself."""
    ran = at.mendwork("deliver", branch, "--project", project, "--detach", *(options or ("--yes",)))
    assert ran.code == 0, ran.err
    return ran.out.strip()


def beside(*calls: Any) -> list[Any]:
    """What several calls without arguments return, made at once."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))


def waited(at: Workshop, name: str, kind: str, *, seconds: float = 90, **where: Any) -> dict[str, Any]:
    """The data of a delivery's first event of a kind, once it is there; ``where`` restricts it."""
    found: list[dict[str, Any]] = wait_for(
        lambda: told(at, name, kind, **where), seconds=seconds, why=f"{kind} of {name}"
    )
    return found[0]


def status_of(at: Workshop, project: str, number: int) -> dict[str, Any]:
    """``mendwork release show NUMBER --json``."""
    ran = at.mendwork("release", "show", str(number), "--project", project, "--json")
    assert ran.code == 0, ran.err
    record: dict[str, Any] = json.loads(ran.out)
    return record


def lane_of(at: Workshop, project: str) -> dict[str, Any]:
    """``mendwork lane PROJECT --json``."""
    state: dict[str, Any] = json.loads(at.mendwork("lane", project, "--json").out)
    return state


def acknowledged(at: Workshop, project: str) -> Ran:
    """A person ends the freeze."""
    return at.mendwork("lane", project, "--acknowledge", "--reason", "we looked into it", "--by", "ann")


def sites(at: Workshop) -> dict[tuple[str, str], dict[str, Any]]:
    """``mendwork target status --json``: the sites by project and environment."""
    seen = json.loads(at.mendwork("target", "status", "--json").out)
    return {(site["project"], site["environment"]): site for site in seen["sites"]}


def address(at: Workshop, project: str) -> str:
    """Where the users of a project's production go."""
    url: str = sites(at)[project, "production"]["url"]
    return url


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one request came to: ``release`` 0 when no release answered, ``fault`` when nobody did."""

    status: int = 0
    release: int = 0
    body: str = ""
    fault: str = ""
    at: float = 0.0


def asked(url: str, path: str = "/", *, connection: http.client.HTTPConnection | None = None) -> Answer:
    """One request, on a connection of its own unless one is given."""
    used = connection or http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        used.request("GET", path)
        answer = used.getresponse()
        body = answer.read().decode()
        return Answer(status=answer.status, release=int(answer.getheader(TOLD) or 0), body=body, at=time.monotonic())
    except (OSError, http.client.HTTPException) as error:
        used.close()
        return Answer(fault=repr(error), at=time.monotonic())
    finally:
        if connection is None:
            used.close()


class Users:
    """50 requests a second at one address: 25 over connections that stay, 25 over fresh ones."""

    def __init__(self, url: str, *, paths: Sequence[str] = ("/",)) -> None:
        self._url, self._paths = url, paths
        self._over = threading.Event()
        self.answers: list[Answer] = []
        self._threads = [threading.Thread(target=self._go, args=(stay,)) for stay in (True, False) for _ in range(5)]

    def __enter__(self) -> Users:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def seen(self, release: int) -> list[Answer]:
        """The answers of one release."""
        return [answer for answer in self.answers if answer.release == release]

    def lost(self) -> list[Answer]:
        """Requests that no release answered: those that the switch, or the proxy, would be to blame for."""
        return [answer for answer in self.answers if not answer.release]

    def _go(self, stay: bool) -> None:
        kept = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=10)
        number = 0
        while not self._over.wait(0.2):
            path = self._paths[number % len(self._paths)]
            self.answers.append(asked(self._url, path, connection=kept if stay else None))
            number += 1
        kept.close()


def without(program: str) -> tuple[str, ...]:
    """``mendwork dev`` on a machine that does not have ``program``, which is given with its path."""
    root = () if os.geteuid() == 0 else ("--map-root-user",)
    return ("unshare", "--mount", *root, "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', program, *DEV)


def last_line(ran: Ran) -> str:
    """The last thing that a person reads."""
    return ran.err.strip().splitlines()[-1]
