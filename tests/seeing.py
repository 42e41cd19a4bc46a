"""Prometheus and a collector of OpenTelemetry, both real, for as long as a test looks through them."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from setup.programs import find_program
from tests.spawning import spawned

OPS = Path(__file__).resolve().parents[1] / "ops"
TRIES = 5


def program(name: str) -> str:
    """Where a program is that the set-up makes. Raises SetupError with the command that makes it."""
    return str(find_program(name))


def free_port() -> int:
    """One that nobody has at this moment."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@dataclass(frozen=True, kw_only=True)
class Prometheus:
    """``url`` is its address."""

    url: str

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer; fails with Prometheus's own sentence where it says no."""
        target = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(target, timeout=20) as answer:  # noqa: S310 - our own
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{query or path}: {json.load(error)['error']}") from None

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """An instant vector: values by their labels, without the metric's name."""
        found = self.get("query", query=expression)["result"]
        return {
            tuple(sorted((k, v) for k, v in each["metric"].items() if k != "__name__")): float(each["value"][1])
            for each in found
        }

    def total(self, expression: str) -> float:
        """The sum of what it is."""
        return sum(self.query(expression).values())


@contextlib.contextmanager
def prometheus(folder: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """One that scrapes ``targets`` (host:port) every half second under our job's name, with our rules."""
    configuration = yaml.safe_load((OPS / "prometheus" / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    configuration["rule_files"] = [str(OPS / "prometheus" / "alerts.yml")]
    (job,) = configuration["scrape_configs"]
    job["static_configs"] = [{"targets": list(targets)}]
    folder.mkdir(parents=True)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))

    def argv(port: int) -> list[str]:
        return [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    def ready(port: int) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)

    with _served(argv, ready, log=folder / "prometheus.log") as port:
        yield Prometheus(url=f"http://127.0.0.1:{port}")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """One span as the collector wrote it; ids in hexadecimal, ``parent`` "" for a root."""

    name: str
    trace: str
    id: str
    parent: str
    worker: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RealCollector:
    """``url`` is what exporters get, ``file`` what the collector prints."""

    url: str
    file: Path

    def spans(self) -> list[Exported]:
        """All that it has printed so far."""
        return list(_spans(self.file.read_text().splitlines()))


@contextlib.contextmanager
def collector(folder: Path) -> Iterator[RealCollector]:
    """With the configuration that we ship."""
    folder.mkdir(parents=True)
    file = folder / "collector.log"

    def argv(port: int) -> list[str]:
        listen = f"MENDWORK_COLLECTOR_LISTEN=127.0.0.1:{port}"
        return ["env", listen, program("mendwork-collector"), f"--config={OPS / 'collector' / 'collector.yaml'}"]

    def ready(port: int) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/traces", data=b"{}", headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)

    with _served(argv, ready, log=file) as port:
        yield RealCollector(url=f"http://127.0.0.1:{port}", file=file)


@contextlib.contextmanager
def _served(argv: Any, ready: Any, *, log: Path) -> Iterator[int]:
    """A program that listens on a port which it is told; when somebody else was faster, on another one."""
    for _ in range(TRIES):
        port = free_port()
        with spawned(argv(port), log=log, grace=20) as process:
            if _answers(process, ready, port):
                yield port
                return
    raise AssertionError(f"it does not start:\n{log.read_text()[-2000:]}")


def _answers(process: subprocess.Popen[bytes], ready: Any, port: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            if ready(port):
                return process.poll() is None
        time.sleep(0.05)
    return False


def _spans(lines: Iterable[str]) -> Iterator[Exported]:
    """As the debug exporter prints them: heads, then ``name : value`` and ``-> name: Type(value)``, both indented."""
    resource: dict[str, Any] = {}
    span: dict[str, str] = {}
    attributes: dict[str, Any] = {}
    for line in [*lines, "Span #"]:
        if line.startswith(("ResourceSpans #", "ScopeSpans #", "Span #")):
            if "Name" in span:
                yield _exported(span, attributes, resource)
            resource = {} if line.startswith("ResourceSpans #") else resource
            span, attributes = {}, {} if line.startswith("Span #") else resource
        elif found := _ATTRIBUTE.match(line):
            attributes[found["name"]] = int(found["value"]) if found["kind"] == "Int" else found["value"]
        elif found := _FIELD.match(line):
            span[found["name"]] = found["value"]


_ATTRIBUTE = re.compile(r"^ +-> (?P<name>[^:]+): (?P<kind>\w+)\((?P<value>.*)\)$")
_FIELD = re.compile(r"^ {4}(?P<name>Trace ID|Parent ID|ID|Name) +: (?P<value>.*)$")


def _exported(span: Mapping[str, str], attributes: Mapping[str, Any], resource: Mapping[str, Any]) -> Exported:
    return Exported(
        name=span["Name"],
        trace=span["Trace ID"],
        id=span["ID"],
        parent=span["Parent ID"],
        worker=resource.get("mendwork.worker", ""),
        attributes=attributes,
    )
