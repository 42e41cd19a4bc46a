"""``[telemetry]`` as people write it, and the address that a worker leaves."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.cli.serving.seen import CLASSES
from adapters.settings import Settings, load_settings
from adapters.settings.telemetry import TelemetrySettings
from adapters.telemetry.logs import JsonLines
from adapters.telemetry.subject import Subject, current
from adapters.temporal.environment import DEPLOY, WORKERS, worker_environment
from domain.errors import InvalidInput


def load(folder: Path, text: str, **environment: str) -> Settings:
    (folder / "mendwork.toml").write_text(text)
    return load_settings(start=folder, environment=environment)


def test_without_a_word_each_worker_takes_a_free_port_of_loopback(tmp_path: Path) -> None:
    telemetry = load(tmp_path, "").telemetry
    assert [telemetry.listens(place) for place in range(2)] == [("127.0.0.1", 0), ("127.0.0.1", 0)]
    assert (telemetry.logs, telemetry.otlp) == ("text", "")


def test_a_port_is_the_first_of_one_for_each_class() -> None:
    telemetry = TelemetrySettings(listen="[::1]:9464")
    assert [telemetry.listens(place) for place in range(len(CLASSES))] == [("::1", 9464 + place) for place in range(5)]
    assert (*WORKERS, DEPLOY) == CLASSES


def test_nothing_is_served_where_nothing_is_asked_for(tmp_path: Path) -> None:
    assert load(tmp_path, "", MENDWORK_TELEMETRY__LISTEN="").telemetry.listens(0) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('listen = "9464"', "HOST:PORT"),
        ('listen = "127.0.0.1:65535"', "65531"),
        ('listen = "a b:1"', "HOST:PORT"),
        ('logs = "xml"', "'text' or 'json'"),
        ('otlp = "127.0.0.1:4318"', "address of a collector"),
        ('otlp = "ftp://127.0.0.1"', "address of a collector"),
        ('otlp = "http://me:hunter2@collector:4318"', "must not hold a password"),
        ('otlp = "http://collector:99999"', "address of a collector"),
        ("metrics = true", "known: listen, logs, otlp"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_without_the_value(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(InvalidInput) as error:
        load(tmp_path, f"[telemetry]\n{line}\n")
    assert why in str(error.value)
    assert "hunter2" not in str(error.value)
    assert f"telemetry.{line.partition(' ')[0]}" in str(error.value) or "metrics" in line


def test_workers_get_the_collectors_address_and_not_its_key() -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=key"}
    for worker in CLASSES:
        assert worker_environment(worker, given) == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}


def logged(write: Callable[[logging.Logger], object]) -> dict[str, Any]:
    """The line of the one record that ``write`` makes."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    logger, handler = logging.Logger("mendwork"), Kept()
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    write(logger)
    (line,) = lines
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record_says_what_it_is_about() -> None:
    token = current.set(Subject(build="build-calc-1", task="mul", attempt=2))
    try:
        details = {"workflow_id": "build-calc-1-task-mul", "activity_type": "run_gates", "attempt": 3, "namespace": "d"}
        line = logged(lambda log: log.warning("red: %s", "one\ntwo", extra={"temporal_activity": details}))
    finally:
        current.reset(token)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        **{"level": "warning", "logger": "mendwork", "message": "red: one\ntwo"},
        **{"build": "build-calc-1", "task": "mul", "attempt": 2},
        **{"workflow": "build-calc-1-task-mul", "activity": "run_gates", "try": 3},
    }


def test_a_record_of_nothing_in_particular_has_no_empty_fields() -> None:
    assert set(logged(lambda log: log.info("serving"))) == {"time", "level", "logger", "message"}


def test_an_exception_is_its_class_and_its_places_but_not_its_text() -> None:
    def fails() -> None:
        raise RuntimeError("the key is hunter2")

    def write(log: logging.Logger) -> None:
        try:
            fails()
        except RuntimeError:
            log.exception("unexpected")

    line = logged(write)
    assert (line["error"], line["message"]) == ("RuntimeError", "unexpected")
    assert line["at"][-1].endswith(" fails")
    assert __file__ in line["at"][-1]
    assert "hunter2" not in json.dumps(line)


def loaded(*modules: str) -> set[str]:
    """What a fresh interpreter holds after it imported ``modules``."""
    code = f"import json, sys, {', '.join(modules)}\nprint(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_a_worker_without_a_collector_loads_nothing_of_opentelemetry() -> None:
    found = loaded("worker", "adapters.telemetry.process", "adapters.telemetry.sdk", "adapters.telemetry.endpoint")
    assert "prometheus_client" in found
    assert [name for name in found if name.startswith("opentelemetry")] == []


def test_the_entry_points_load_nothing_of_it() -> None:
    assert not {"prometheus_client", "opentelemetry", "adapters.telemetry"} & loaded("worker", "starter")
