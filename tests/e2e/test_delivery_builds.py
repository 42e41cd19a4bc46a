"""A build that is delivered: landed, released, promoted; its secret reaches the release and nobody else."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adapters.compliance.user_repository import contents
from tests.e2e import service
from tests.e2e.projects import Scene, answered, begun, change, edit, events, plan, repository, serving, task, told
from tests.e2e.shops import address, asked, delivered, emptied, lane_of, last_line, sites, status_of, waited, without
from tests.e2e.shops import begun as delivery_begun
from tests.e2e.test_temporal_cli import content_of, history
from tests.e2e.workshop import DEV, Ran, Workshop, git
from tests.trees import files_below

pytestmark = pytest.mark.timeout(300)

CANARY = f"canary-deploy-{uuid.uuid4().hex}"
MARK = hashlib.sha256(CANARY.encode()).hexdigest()[:16]
TELLS = service.SERVE.replace(
    "price {price(2)}", "price {price(2)} {hashlib.sha256(os.environ['SHOP_TOKEN'].encode()).hexdigest()[:16]}"
).replace("import os\n", "import hashlib\nimport os\n")
DEARER = [
    plan(task("dearer", "prices.py")),
    change("dearer", 1, edit("prices.py", "return 10 * count", "return 11 * count")),
]
CONSENT = 'approve = ["change", "release"]\nreview = false\n'
SHOP = Scene(
    name="shop",
    answers=DEARER,
    files={**service.FILES, "serve.py": TELLS},
    consent=CONSENT,
    more=service.section("task-shop", more='secrets = ["SHOP_TOKEN"]'),
)
FEW = "seconds = 2\nwindow = 2\nrate = 5\nmin_asked = 1000"
WITHDRAWN = Scene(
    name="withdrawn",
    answers=DEARER,
    files=service.FILES,
    consent=CONSENT,
    more=service.section("task-withdrawn", watch=FEW),  # which cannot tell, and so goes on until a person says
)
Delivered = tuple[Workshop, Ran]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("builds")
    with serving(folder, [SHOP, WITHDRAWN], dev=DEV, environment={"SHOP_TOKEN": CANARY}) as at, emptied(at):
        yield at


@pytest.fixture(scope="module")
def withdrawn(at: Workshop) -> Iterator[Future[None]]:
    """A story of its own, beside the other."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(an_abort_while_it_is_watched, at)


@pytest.fixture(scope="module")
def built(at: Workshop, withdrawn: Future[None]) -> Delivered:
    arguments = ("--project", SHOP.project, "--approve", "change,release")
    return at, at.mendwork("build", "spec.md", *arguments, seconds=150)


def test_a_build_goes_all_the_way_and_everything_tells_so(built: Delivered) -> None:
    at, ran = built
    assert ran.code == 0, ran.err
    build = ran.out.strip()
    assert asked(address(at, SHOP.project)).body == f"price 22 {MARK}"
    status = at.status(build)
    assert (status["status"], status["delivery"]["status"], status["delivery"]["release"]) == (
        "succeeded",
        "promoted",
        1,
    )
    record = status_of(at, SHOP.project, 1)
    assert (record["build"], record["saga"], record["status"]) == (build, f"{build}-release", "promoted")
    assert record["commit"] == git(at.root / SHOP.project, "rev-parse", f"mendwork/{build}").strip()
    assert record["record"]["approved"][0]["how"] == "beforehand"
    assert lane_of(at, SHOP.project)["current"]["number"] == 1
    trace = at.mendwork("trace", build).out
    for word in ("release 1", "promoted", "window", "switched"):
        assert word in trace
    shown = at.mendwork("release", "show", "1", "--project", SHOP.project).out
    assert f"artefact {record['artifact']}" in shown
    assert "release 1 is promoted" in ran.err


def test_the_deploy_secret_is_with_the_release_and_nowhere_else(built: Delivered) -> None:
    at, ran = built
    build, canary = ran.out.strip(), CANARY.encode()
    lane = f"lane-{SHOP.project}-production"
    for workflow in (build, f"{build}-release", f"{build}-release-watch", lane):
        assert CANARY not in json.dumps(history(at, workflow))
    holding = [path for path in files_below(at.state) if canary in content_of(path)]
    assert {path.name for path in holding} <= {"order.json"}  # what its launcher reads, below the target's folder
    assert all(path.is_relative_to(at.state / "target") and path.stat().st_mode & 0o077 == 0 for path in holding)
    holders = {worker for worker, pid in at.pids().items() if canary in Path(f"/proc/{pid}/environ").read_bytes()}
    assert holders == {"deploy"}
    assert not [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if canary in content_of(entry)]
    for command in (["log", build], ["trace", build], ["release", "show", "1", "--project", SHOP.project, "--json"]):
        shown = at.mendwork(*command)
        assert CANARY not in shown.out + shown.err + ran.err + ran.out


def an_abort_while_it_is_watched(at: Workshop) -> None:
    project, shop = WITHDRAWN.project, repository(at, WITHDRAWN)
    first = delivery_begun(at, project)
    waited(at, first, "ask.opened", about="watch")
    assert answered(at, "answer", first, "promote", "--by", "ann")["outcome"] == "accepted"
    assert at.mendwork("watch", first).code == 0
    before = kept(shop)

    build = begun(at, WITHDRAWN, "--approve", "change,release")
    waited(at, build, "watch.window", release=2)
    url = address(at, project)
    assert (asked(url).release, asked(url).body) == (2, "price 22")
    assert git(shop, "branch", "--list", "mendwork/*").split() == [f"mendwork/{build}"]
    assert answered(at, "abort", build, "--by", "ann", "--reason", "second thoughts")["outcome"] == "accepted"
    followed = at.mendwork("watch", build)
    assert followed.code == 3, followed.err

    status = at.status(build)
    assert (status["status"], status["sentence"]) == ("aborted", "ann ended the build: second thoughts")
    assert kept(shop) == before  # its branch is gone, and nothing else was touched
    assert status_of(at, project, 2)["status"] == "rolled back"
    assert (asked(url).release, asked(url).body) == (1, "price 20")
    assert {unit["release"] for unit in sites(at)[project, "production"]["units"]} == {1}
    assert (lane_of(at, project)["current"]["number"], lane_of(at, project)["frozen"]["release"]) == (1, 2)
    in_this_order(at, build)


def kept(shop: Path) -> dict[str, bytes]:
    """Every file of the user's repository, but for objects: what a branch led to stays until git's own gc."""
    return {name: content for name, content in contents(shop).items() if not name.startswith(".git/objects/")}


def in_this_order(at: Workshop, build: str) -> None:
    """Traffic back, then the release's end, then the lane's freeze, then the report, then the build's own undo."""
    steps = steps_of(history(at, f"{build}-release"))
    back, left, told_it = (steps.index(step) for step in ("restore_traffic", "signal leave", "signal delivered"))
    assert back < steps.index("retire_unit") < left < told_it
    steps = steps_of(history(at, build))
    assert steps.index("signal abort") < steps.index("told delivered") < steps.index("retract_result")
    kinds = [event.kind for event in events(at, build)]
    assert kinds.index("release.rolled_back") < kinds.index("delivery.ended") < kinds.index("build.ended")


def steps_of(history: list[dict[str, Any]]) -> list[str]:
    """The activities and signals of a saga by name, in the order of its history."""
    steps: list[str] = []
    for event in history:
        if begun_activity := event.get("activityTaskScheduledEventAttributes"):
            steps.append(begun_activity["activityType"]["name"])
        if sent := event.get("signalExternalWorkflowExecutionInitiatedEventAttributes"):
            steps.append(f"signal {sent['signalName']}")
        if heard := event.get("workflowExecutionSignaledEventAttributes"):
            steps.append(f"told {heard['signalName']}")
    return steps


def test_a_build_that_is_aborted_while_it_is_watched_is_taken_back_from_production_first(
    withdrawn: Future[None],
) -> None:
    withdrawn.result()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """On a machine without haproxy."""
    haproxy = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    assert haproxy
    scene = Scene(name="bare", answers=DEARER, files=service.FILES, more=service.section("task-bare"))
    with serving(tmp_path_factory.mktemp("bare"), [scene], dev=without(haproxy)) as at, emptied(at):
        yield at


def test_without_a_proxy_a_build_lands_all_the_same_and_says_what_is_missing(bare: Workshop) -> None:
    ran = bare.mendwork("build", "spec.md", "--project", "task-bare", "--approve", "release", seconds=150)
    assert ran.code == 6, ran.err
    assert "the local target needs haproxy; install it: apt-get install -y haproxy" in ran.err
    build = ran.out.strip()
    assert (bare.status(build)["status"], told(bare, build, "artifact.built")) == ("undelivered", [])
    assert git(bare.root / "task-bare", "show", f"mendwork/{build}:prices.py").strip().endswith("11 * count")
    alone = delivered(bare, "task-bare")
    assert (alone.code, "needs haproxy" in last_line(alone)) == (3, True), alone.err
    assert sites(bare) == {}
