"""The rules and dashboards that we ship name figures that there are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.cli.serving.seen import CLASSES
from adapters.telemetry.metrics import Metrics
from tests.seeing import OPS, program

RULES = OPS / "prometheus"
# Of Temporal's SDK, as a real worker shows them.
OF_THE_SDK = {"temporal_activity_schedule_to_start_latency_bucket", "temporal_worker_task_slots_available"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((OPS / "grafana" / "mendwork.json").read_text())["panels"]
    return found


EXPRESSIONS = [rule["expr"] for rule in rules()] + [each["expr"] for panel in panels() for each in panel["targets"]]


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Names of samples, and the labels of each."""
    metrics = Metrics(worker="saga", models=["coder"])
    described = {
        "mendwork_activity_duration_seconds": {"activity", "outcome"},
        "mendwork_faults": {"activity", "kind"},
        "mendwork_builds_ended": {"status"},
        "mendwork_model_calls": {"role", "model", "outcome"},
        "mendwork_model_tokens": {"role", "model", "direction"},
        "mendwork_model_cost_microdollars": {"role", "model"},
        "mendwork_spans_lost": set[str](),
        "mendwork_phase_duration_seconds": {"phase"},
        "mendwork_phase_cost_dollars": {"phase"},
        "mendwork_phase_anomalies": {"phase", "measure"},
    }
    names = {family.name for family in metrics.registry.collect()}
    assert set(described) <= names
    ends = ("", "_total", "_bucket", "_sum", "_count")
    return {f"{name}{end}": labels for name, labels in described.items() for end in ends}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_figures_and_labels_that_there_are(expression: str, known: dict[str, set[str]]) -> None:
    for name, selected in re.findall(r"\b((?:mendwork|temporal)_\w+)(?:\{([^}]*)\})?", expression):
        assert name in known or name in OF_THE_SDK
        assert set(re.findall(r"(\w+)!?=", selected)) <= known.get(name, set())


def test_there_is_something_to_look_at() -> None:
    assert len(rules()) >= 5
    assert len(panels()) >= 6
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_prometheus_asks_each_class_at_the_port_that_it_takes() -> None:
    config = yaml.safe_load((RULES / "prometheus.yml").read_text())
    (targets,) = [each["targets"] for job in config["scrape_configs"] for each in job["static_configs"]]
    assert targets == [f"workers:{9464 + place}" for place in range(len(CLASSES))]
    assert config["rule_files"] == ["alerts.yml"]


def promtool(*arguments: str | Path) -> str:
    """What Prometheus's own checker says; it has to find nothing wrong."""
    ran = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_prometheus_takes_the_configuration_and_its_rules() -> None:
    assert "SUCCESS" in promtool("check", "config", RULES / "prometheus.yml")


def test_each_alert_fires_where_it_should_and_is_silent_where_it_should_be() -> None:
    scenes = [
        each
        for test in yaml.safe_load((RULES / "alerts_test.yml").read_text())["tests"]
        for each in test["alert_rule_test"]
    ]
    fires = {each["alertname"] for each in scenes if each["exp_alerts"]}
    silent = {each["alertname"] for each in scenes if not each["exp_alerts"]}
    assert fires == silent == {rule["alert"] for rule in rules()}
    assert "SUCCESS" in promtool("test", "rules", RULES / "alerts_test.yml")


def test_prometheus_understands_every_panel_of_the_dashboard(tmp_path: Path) -> None:
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    recorded = [{"record": f"panel:{place}", "expr": expression} for place, expression in enumerate(shown)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    assert f"{len(shown)} rules found" in promtool("check", "rules", file)
