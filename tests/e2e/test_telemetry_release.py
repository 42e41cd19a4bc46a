"""A build that is delivered, seen by a real collector and a real Prometheus; its saga worker is killed on the way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.store import open_store
from domain.ports.store import Event
from domain.trace.usual.baseline import LEAST
from tests.e2e import service
from tests.e2e.projects import Scene, change, edit, plan, serving, task, told
from tests.e2e.shops import emptied
from tests.e2e.test_temporal_cli import history
from tests.e2e.workshop import Ran, Workshop, wait_for
from tests.seeing import OPS, Exported, Prometheus, RealCollector, collector, prometheus

pytestmark = pytest.mark.timeout(300)

CANARY = f"canary-deploy-{uuid.uuid4().hex}"  # of this run: another may be on this machine
CLASSES = ("saga", "workspace", "model", "sandbox", "deploy")
SAGAS = ("BuildSaga", "TaskSaga", "DeliverySaga", "KpiWatch")
ANSWERS = [
    plan(task("dearer", "prices.py"), usage={"input_tokens": 300, "output_tokens": 15_000}),
    change("dearer", 1, edit("prices.py", "return 10 * count", "return 11 * count")),
]
SHOP = Scene(
    name="seen",
    answers=ANSWERS,
    files=service.FILES,
    consent='approve = ["release"]\nreview = false\n',
    more=service.section("task-seen", more='secrets = ["SHOP_TOKEN"]'),
)
PRIVATE = (CANARY, "canary-key", "return 11", "def price", "Multiply", "Add the function", "Traceback")
"""Words of secrets, the spec, prompts, answers and stacks."""
NOBODY = "127.0.0.1:9"
EARLIER = "build-earlier-"
HOUR = 3_600_000


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One delivered build and all that looked at it."""

    at: Workshop
    ran: Ran
    collector: RealCollector
    prometheus: Prometheus

    @property
    def build(self) -> str:
        return self.ran.out.strip()

    def spans(self) -> list[Exported]:
        """Those of the build's trace, once its end is there."""

        def trace() -> str:
            ends = [s.trace for s in self.collector.spans() if s.name == "CompleteWorkflow:BuildSaga"]
            return ends[0] if ends else ""

        number = wait_for(trace, seconds=60, why="the end of the trace")
        return [span for span in self.collector.spans() if span.trace == number]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("seen")
    with collector(folder / "collector") as taking:
        telemetry = f'\n[telemetry]\notlp = "{taking.url}"\n'
        scene = serving(folder, [SHOP], extra=telemetry, environment={"SHOP_TOKEN": CANARY})
        with scene as at, emptied(at), prometheus(folder / "prometheus", [*pages(at).values(), NOBODY]) as looking:
            wait_for(lambda: looking.total('up{job="mendwork"}') == len(CLASSES), seconds=60, why="a scrape of all")
            with past(at):
                ran = killed_midway(at, taking)
            yield Seen(at=at, ran=ran, collector=taking, prometheus=looking)


def pages(at: Workshop) -> dict[str, str]:
    """Host and port of each worker's pages."""

    def found() -> dict[str, str]:
        files = (at.state / "telemetry").glob("*.json")
        return {file.stem: json.loads(file.read_text())["url"].removeprefix("http://") for file in files}

    addresses: dict[str, str] = wait_for(lambda: found() if set(found()) == set(CLASSES) else {}, why="the pages")
    return addresses


@contextlib.contextmanager
def past(at: Workshop) -> Iterator[None]:
    """Five builds whose plans cost a cent each are in the store, and whose phases take an hour, as slow as no machine
    is; gone at the end, for no history tells of them."""
    asyncio.run(planned_before(at))
    try:
        yield
    finally:
        with contextlib.closing(sqlite3.connect(at.state / "mendwork.db", timeout=60)) as database:
            for table in ("events", "builds"):
                database.execute(f"DELETE FROM {table} WHERE build LIKE '{EARLIER}%'")  # noqa: S608 - our own words
            database.commit()


async def planned_before(at: Workshop) -> None:
    usage = {"input_tokens": 100, "output_tokens": 2_475, "cost_micros": 10_000}
    call = {"step": "plan", "turn": 1, "model": "coder", "prompt": "p", "faults": [], "problems": [], "usage": usage}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("build.started", {"project": "", "title": "T", "user": "ann"}),
        ("build.admitted", {"project": SHOP.project, "spec": "s"}),
        ("build.phase", {"phase": "plan"}),
        ("call.answered", call),
        ("build.phase", {"phase": "tasks"}),
        ("build.ended", {"status": "succeeded", "sentence": "done"}),
    ]
    async with await open_store(f"sqlite+aiosqlite:///{at.state / 'mendwork.db'}") as store:
        for name in (f"{EARLIER}{number}" for number in range(1, LEAST + 1)):
            events = [
                Event(first_run=name, run=name, sequence=place, build=name, kind=kind, at=place * HOUR, data=data)
                for place, (kind, data) in enumerate(rows, 1)
            ]
            await store.events.append(events)


def killed_midway(at: Workshop, taking: RealCollector) -> Ran:
    """The build from its start to its end; the saga worker is killed when the task has been merged, and what it told
    of the task has been sent: a killed worker loses its last second."""
    done: list[Ran] = []

    def run() -> None:
        done.append(at.mendwork("build", "spec.md", "--project", SHOP.project, "--approve", "release", seconds=200))

    build = threading.Thread(target=run)
    build.start()
    try:
        wait_for(lambda: told(at, f"build-{SHOP.project}-1", "task.merged"), seconds=180, why="a merge")
        sent = "CompleteWorkflow:TaskSaga"
        wait_for(lambda: any(span.name == sent for span in taking.spans()), seconds=60, why="the task's spans")
        at.kill("saga")
    finally:
        build.join()
    assert done, "the build did not end"
    return done[0]


def test_it_is_delivered_all_the_same(seen: Seen) -> None:
    assert seen.ran.code == 0, seen.ran.err
    assert seen.at.status(seen.build)["delivery"]["status"] == "promoted"


def test_the_deploy_worker_is_ready_when_its_target_is(seen: Seen) -> None:
    with urllib.request.urlopen(f"http://{pages(seen.at)['deploy']}/readyz", timeout=20) as answer:
        found = json.load(answer)
    assert found["ready"]
    assert set(found["subsystems"]) == {"temporal", "worker", "state", "disk", "blobs", "target local"}


def test_the_build_its_tasks_its_release_and_its_watch_are_one_trace(seen: Seen) -> None:
    spans = seen.spans()
    by_saga = {kind: {s.trace for s in seen.collector.spans() if s.name == f"RunWorkflow:{kind}"} for kind in SAGAS}
    assert by_saga == {kind: {spans[0].trace} for kind in SAGAS}
    assert [s.name for s in spans if not s.parent] == ["Saga:BuildSaga"]
    assert {s.worker for s in spans} == set(CLASSES), "and it goes through every process"
    names = {s.name for s in spans}
    assert {"RunActivity:switch_traffic", "RunActivity:measure_window", "RunActivity:build_artifact"} <= names


def test_a_workflow_that_was_replayed_by_another_worker_is_not_told_twice(seen: Seen) -> None:
    spans = seen.spans()
    sagas = {span.attributes["temporalWorkflowID"] for span in spans if span.name.startswith("RunWorkflow:")}
    assert {seen.build, f"{seen.build}-release", f"{seen.build}-release-watch"} < sagas
    for saga in sagas:
        own = [s for s in spans if s.attributes.get("temporalWorkflowID") == saga]
        told_of = Counter(s.name for s in own if s.name.partition(":")[0] in ("RunWorkflow", "CompleteWorkflow"))
        assert max(told_of.values()) == 1, told_of
        scheduled = scheduled_in(history(seen.at, saga))
        started = Counter(s.name.partition(":")[2] for s in own if s.name.startswith("StartActivity:"))
        assert {name: n for name, n in started.items() if n > scheduled[name]} == {}
    ids = Counter(span.id for span in seen.collector.spans())
    assert max(ids.values()) == 1


def scheduled_in(events: list[dict[str, Any]]) -> Counter[str]:
    """How often a history has each activity."""
    scheduled = [each.get("activityTaskScheduledEventAttributes") for each in events]
    return Counter(each["activityType"]["name"] for each in scheduled if each)


def test_a_model_call_has_the_names_of_the_convention_for_generative_ai(seen: Seen) -> None:
    calls = [span for span in seen.spans() if "gen_ai.operation.name" in span.attributes]
    assert {span.name for span in calls} == {"chat scripted"}
    answered = [span for span in calls if "error.type" not in span.attributes]  # a busy machine may need a second try
    assert len(answered) == len(seen.at.billed()) == 2
    for span in answered:
        assert span.attributes["gen_ai.system"] == span.attributes["gen_ai.provider.name"] == "openai"
        assert span.attributes["gen_ai.request.model"] == "scripted"
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
    tokens = sum(span.attributes["gen_ai.usage.output_tokens"] for span in answered)
    assert tokens == sum(line["output_tokens"] for line in seen.at.billed())


def test_no_secret_no_prompt_and_no_path_of_this_machine_has_left(seen: Seen) -> None:
    seen.spans()
    sent = seen.collector.file.read_text()
    for private in (*PRIVATE, str(seen.at.root), str(Path.home()), str(OPS.parent)):
        assert private not in sent


def test_a_plan_that_costs_six_times_its_usual_is_in_the_log_and_people_are_told(seen: Seen) -> None:
    (row,) = told(seen.at, seen.build, "phase.anomaly")
    assert (row["phase"], row["measures"], row["phases"]) == ("plan", ["cost"], LEAST)
    assert (row["cost_micros"], row["usual_cost_micros"]) == (60_300, 10_000)
    assert "much more than usual: plan cost $0.0603, usually $0.0100" in seen.ran.err
    assert "plan cost $0.0603, usually $0.0100" in seen.at.mendwork("trace", seen.build).out


def test_it_is_counted_and_its_alert_fires(seen: Seen) -> None:
    counted = 'max_over_time(mendwork_phase_anomalies_total{phase="plan", measure="cost"}[30m])'
    assert seen.prometheus.total(counted) == 1
    timed = 'max_over_time(mendwork_phase_duration_seconds_count{phase="plan"}[30m])'
    assert seen.prometheus.total(timed) == 1

    def fires() -> Any:
        return [
            a for a in seen.prometheus.get("alerts")["alerts"] if a["labels"]["alertname"] == "MendworkPhaseStandsOut"
        ]

    (alert,) = wait_for(fires, seconds=30, why="the alert")
    assert (alert["state"], alert["labels"]["phase"], alert["labels"]["measure"]) == ("firing", "plan", "cost")


def test_prometheus_sees_the_workers_and_one_that_is_not_there(seen: Seen) -> None:
    looking = seen.prometheus
    workers = {dict(labels)["worker"] for labels in looking.query("mendwork_worker_info")}
    assert workers >= set(CLASSES) - {"saga"}
    gone = wait_for(lambda: looking.query('up{job="mendwork"} == 0'), seconds=30, why="a target that is down")
    assert NOBODY in {dict(labels)["instance"] for labels in gone}


def test_every_rule_of_ours_is_evaluated_and_the_one_that_should_is_about_to_fire(seen: Seen) -> None:
    def evaluated() -> dict[str, Any]:
        (group,) = seen.prometheus.get("rules")["groups"]
        rules = {rule["name"]: rule for rule in group["rules"]}
        return rules if rules["MendworkWorkerGone"]["state"] != "inactive" else {}

    rules = wait_for(evaluated, seconds=30, why="an alert")
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    assert {alert["labels"]["instance"] for alert in rules["MendworkWorkerGone"]["alerts"]} >= {NOBODY}
    assert rules["MendworkSpansLost"]["state"] == "inactive"


def test_every_panel_of_the_dashboard_can_be_asked_for_and_ours_show_the_build(seen: Seen) -> None:
    panels = json.loads((OPS / "grafana" / "mendwork.json").read_text())["panels"]
    for panel in panels:
        for target in panel["targets"]:
            seen.prometheus.query(target["expr"])
    figures = {name for name in seen.prometheus.get("label/__name__/values") if name.startswith("mendwork_")}
    assert {"mendwork_model_calls_total", "mendwork_activity_duration_seconds_bucket"} <= figures
    calls = 'mendwork_model_calls_total{outcome="answered"}'
    wait_for(lambda: seen.prometheus.total(calls) == 2, seconds=30, why="both calls in Prometheus")
