"""A real build, seen from outside: its pages, its one trace, its logs; and one whose collector is away."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.collector import Collector, Span, collecting
from tests.e2e.workshop import DEV, Workshop, wait_for

pytestmark = pytest.mark.timeout(300)  # whole builds, also on a busy machine

CLASSES = {"saga", "workspace", "model", "sandbox"}
# Words of the spec, the prompts, the answers and the key: none may leave with a figure, a record or a span.
PRIVATE = ("multiplies and squares", "def mul", "Add the function", "canary-key", "hunter2", "Traceback")


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Workshop]:
    """One build has run; the model worker was killed in front of it."""
    made = Workshop(tmp_path_factory.mktemp("seen") / "w")
    telemetry = f'\n[telemetry]\nlogs = "json"\notlp = "{collector.url}"\n'
    with made.running(dev=DEV, extra=telemetry):
        killed = made.kill("model")
        wait_for(lambda: address(made, "model").get("pid") not in (None, killed), seconds=60, why="a new model worker")
        built = made.mendwork("build", str(made.spec))
        assert built.code == 0, built.err
        yield made


def address(at: Workshop, worker: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((at.state / "telemetry" / f"{worker}.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def page(at: Workshop, worker: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address(at, worker)["url"] + path, timeout=20) as answer:  # noqa: S310 - our own
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def samples(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def of_build(collector: Collector) -> list[Span]:
    """The spans of the trace that the build is in, once its end is there."""

    def trace() -> str:
        ends = [span.trace for span in collector.spans() if span.name == "CompleteWorkflow:BuildSaga"]
        return ends[0] if ends else ""

    number = wait_for(trace, seconds=60, why="the end of the trace")
    return [span for span in collector.spans() if span.trace == number]


@pytest.mark.parametrize("worker", sorted(CLASSES))
def test_each_worker_is_ready_and_names_what_it_needs(at: Workshop, worker: str) -> None:
    status, text = page(at, worker, "/readyz")
    found = json.loads(text)
    assert (status, found["ready"]) == (200, True), text
    own = {"saga": {"store"}, "model": {"store"}, "workspace": {"git"}, "sandbox": {"git", "sandbox"}}[worker]
    assert set(found["subsystems"]) == {"temporal", "worker", "state", "disk", "blobs"} | own
    assert page(at, worker, "/livez") == (200, "alive\n")


def test_the_figures_of_the_build_are_the_providers_bill(at: Workshop) -> None:
    found = samples(page(at, "model", "/metrics")[1])

    def total(name: str, *labels: str) -> float:
        chosen = [each for each in found if each.startswith(f"{name}{{") and all(label in each for label in labels)]
        return sum(found[each] for each in chosen)

    billed = at.billed()
    assert total("mendwork_model_calls_total", 'role="reasoning"', 'outcome="answered"') == 1
    assert total("mendwork_model_calls_total", 'role="coding"', 'outcome="answered"') == len(billed) - 1 == 3
    for direction in ("input", "output"):
        counted = total("mendwork_model_tokens_total", 'model="coder"', f'direction="{direction}"')
        assert counted == sum(line[f"{direction}_tokens"] for line in billed)
    assert total("mendwork_model_cost_microdollars_total") == at.status("build-calc-1")["cost_micros"]
    assert found['mendwork_activity_duration_seconds_count{activity="call_model",outcome="completed"}'] == 4


def test_the_saga_worker_times_the_phases_of_the_build(at: Workshop) -> None:
    found = samples(page(at, "saga", "/metrics")[1])
    for phase in ("intake", "base", "plan", "tasks", "landing"):
        assert found[f'mendwork_phase_duration_seconds_count{{phase="{phase}"}}'] == 1, phase
    spent = sum(v for name, v in found.items() if name.startswith("mendwork_phase_cost_dollars_sum"))
    assert round(spent * 1_000_000) == at.status("build-calc-1")["cost_micros"]
    assert found['mendwork_phase_anomalies_total{measure="cost",phase="plan"}'] == 0, "there is no past yet"


def test_the_saga_worker_counts_the_build_and_shows_what_the_sdk_counts(at: Workshop) -> None:
    text = page(at, "saga", "/metrics")[1]
    found = samples(text)
    assert found['mendwork_builds_ended_total{status="succeeded"}'] == 1
    done = [
        value
        for name, value in found.items()
        if name.startswith("temporal_workflow_completed_total{") and "BuildSaga" in name
    ]
    assert done == [1]
    assert any(name.startswith("temporal_request_latency_bucket{") for name in found)
    assert "build-calc-1" not in text, "a label with a name in it grows without end"


def test_it_is_one_trace_and_every_span_has_its_parent_in_it(at: Workshop, collector: Collector) -> None:
    spans = of_build(collector)
    known = {span.id: span for span in spans}
    assert [span.name for span in spans if not span.parent] == ["Saga:BuildSaga"]
    assert [span.name for span in spans if span.parent and span.parent not in known] == []
    assert {span.worker for span in spans} == CLASSES, "across all processes"
    names = Counter(span.name for span in spans)
    assert names["RunWorkflow:TaskSaga"] == 2, "and both tasks"
    assert names["RunActivity:call_model"] == names["chat scripted"] == 4
    for span in spans:
        parent = known[span.parent].name if span.parent else ""
        kind, _, what = span.name.partition(":")
        if kind == "RunActivity":
            assert parent == f"StartActivity:{what}"
        if kind == "RunWorkflow":
            assert parent in {"Saga:BuildSaga", f"StartChildWorkflow:{what}"}
        if kind == "chat scripted":
            assert parent == "RunActivity:call_model"


def test_a_calls_span_has_the_names_of_the_convention(at: Workshop, collector: Collector) -> None:
    calls = [span.attributes for span in of_build(collector) if span.name == "chat scripted"]
    assert {(call["gen_ai.system"], call["gen_ai.request.model"], call["gen_ai.operation.name"]) for call in calls} == {
        ("openai", "scripted", "chat")
    }
    assert Counter(call["mendwork.role"] for call in calls) == {"reasoning": 1, "coding": 3}
    assert all(call["gen_ai.usage.input_tokens"] > 0 and call["gen_ai.usage.output_tokens"] > 0 for call in calls)
    assert "build-calc-1-task-mul/change/1/1" in {call["mendwork.call"] for call in calls}
    (task,) = {
        span.attributes["mendwork.task"] for span in of_build(collector) if span.name == "RunActivity:apply_change"
    } - {"mul"}
    assert task == "square"


def test_no_prompt_no_answer_and_no_key_leaves_with_it(at: Workshop, collector: Collector) -> None:
    of_build(collector)
    sent = b"".join(collector.raw)
    shown = "".join(page(at, worker, "/metrics")[1] for worker in CLASSES)
    logged = "".join(log.read_text() for log in (at.state / "logs").glob("worker-*.log"))
    for private in PRIVATE:
        assert private.encode() not in sent
        assert private not in shown + logged


def test_every_line_of_a_workers_log_is_json(at: Workshop) -> None:
    lines = [line for log in (at.state / "logs").glob("worker-*.log") for line in log.read_text().splitlines()]
    records = [json.loads(line) for line in lines]
    assert all({"time", "level", "logger", "message"} <= set(record) for record in records)
    assert {"serving mendwork", "serving mendwork-model"} <= {record["message"] for record in records}


@pytest.fixture(scope="module")
def untold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Its collector was there once and is away now."""
    made = Workshop(tmp_path_factory.mktemp("untold") / "w")
    with collecting() as collector:
        url = collector.url
    with made.running(extra=f'\n[telemetry]\notlp = "{url}"\n'):
        yield made


def test_a_build_ends_though_nobody_takes_its_spans(untold: Workshop) -> None:
    built = untold.mendwork("build", str(untold.spec))
    assert built.code == 0, built.err
    wait_for(lambda: samples(page(untold, "saga", "/metrics")[1])["mendwork_spans_lost_total"], why="a loss")
    log = (untold.state / "logs" / "worker-saga.log").read_text()
    assert log.count("the collector takes no spans") == 1
    assert "Traceback" not in log


def test_a_worker_whose_temporal_hangs_is_alive_and_not_ready(untold: Workshop) -> None:
    server = json.loads((untold.state / "dev.json").read_text())["server_pid"]
    os.kill(server, signal.SIGSTOP)
    try:
        # On a busy machine a moment passes before the last of its threads has stopped.
        wait_for(lambda: page(untold, "workspace", "/readyz")[0] == 503, why="a worker that is not ready")
        found = json.loads(page(untold, "workspace", "/readyz")[1])["subsystems"]
        assert (found["temporal"]["ready"], found["git"]["ready"]) == (False, True), found
        assert found["temporal"]["why"]
        assert page(untold, "workspace", "/livez")[0] == 200
    finally:
        os.kill(server, signal.SIGCONT)
    wait_for(lambda: page(untold, "workspace", "/readyz")[0] == 200, why="Temporal again")
