"""A build of many tasks goes on in new runs: nothing that waits is lost, and no event of any history is large."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.projects import Scene, answered, begun, change, create, plan, result, serving, task, told, waiting
from tests.e2e.test_temporal_cli import LIMIT, temporal
from tests.e2e.workshop import Workshop, wait_for

SMALL = [f"t{number:02}" for number in range(30)]
MANY = Scene(
    name="many",
    consent='approve = ["change"]\nreview = false\n',
    more="[this.limits]\nattempts = 1\nhistory_events = 150\nparallel = 6\n",
    test="python3 -c pass",
    answers=[
        plan(task("stuck", "stuck.py"), *(task(name, f"{name}.py") for name in SMALL)),
        change("stuck", 1, {"action": "delete", "path": "not-there.py", "content": "", "edits": []}),
        change("stuck", 2, create("stuck.py", "S = 1\n")),
        *(change(name, 1, create(f"{name}.py", f"N = '{name}'\n")) for name in SMALL),
    ],
)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("long"), [MANY]) as at:
        yield at


def runs(at: Workshop, build: str) -> list[str]:
    """The run ids of one workflow."""
    shown = temporal(at, "workflow", "list", "-q", f"WorkflowId = '{build}'", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    return [each["execution"]["runId"] for each in json.loads(shown.stdout)]


@pytest.mark.timeout(300)
def test_many_small_tasks_continue_as_new_with_a_question_open_and_an_early_answer_kept(at: Workshop) -> None:
    build = begun(at, MANY)
    question = waiting(at, build, "task")
    assert question["task"] == "stuck"
    early = answered(at, "approve", build, "00112233445566778899", "--by", "much too early")
    assert early["outcome"] == "early"
    wait_for(lambda: told(at, build, "build.continued"), seconds=120, why="a second run")
    again = answered(at, "approve", build, "00112233445566778899", "--by", "much too early")
    assert (again["outcome"], again["reason"][:9]) == ("refused", "duplicate")  # the new run has kept it
    assert waiting(at, build, "task")["id"] == question["id"]
    assert waiting(at, build, "task")["deadline"] == question["deadline"]
    wait_for(lambda: len(told(at, build, "task.merged")) == len(SMALL), seconds=200, why="the end of all others")
    assert answered(at, "answer", build, question["id"], "retry", "--hint", "create it")["outcome"] == "accepted"
    ask = waiting(at, build)
    assert answered(at, "approve", build, ask["digest"])["outcome"] == "accepted"
    assert at.mendwork("watch", build, seconds=60).code == 0
    assert {f"{name}.py" for name in (*SMALL, "stuck")} <= set(result(at, MANY, build))
    histories = [history(at, build, run) for run in runs(at, build)]
    assert len(histories) >= 3
    assert all(len(events) < 400 for events in histories)  # 150, and what was under way then
    assert max(len(json.dumps(event)) for events in histories for event in events) < LIMIT
    assert len(told(at, build, "ask.opened", about="task")) == 1


def history(at: Workshop, build: str, run: str) -> list[object]:
    shown = temporal(at, "workflow", "show", "-w", build, "-r", run, "-o", "json")
    assert shown.returncode == 0, shown.stderr
    events: list[object] = json.loads(shown.stdout)["events"]
    return events
