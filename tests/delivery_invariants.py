"""What holds after every delivery, however it ended and whatever died on the way: ``check_deliveries``.

I3 approvals, I4 compensations, I5 lanes and records, I6 secrets (``canaries``), I7 projects, I10 what a stopped target
leaves. All of it is read from outside: the database file, Temporal, the target's folder, /proc.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from temporalio.client import WorkflowHistory

from domain.ports.releases import OPEN, PROMOTED, ROLLED_BACK, UNCLEAR, Release
from domain.ports.store import Event
from domain.risk.matrix import AUTONOMOUS, MOST_RISK
from tests.canaries import check_secrets
from tests.delivered import Observed, look_at_deliveries, serving
from tests.e2e.workshop import Workshop, wait_for

COMPENSATIONS = ("restore_traffic", "retire_unit", "undo_step")
NAMED = r"\b(?:deliver|build)-{0}-\d+\b(?!-\d)|\blane-{0}-(?:production|staging)\b"
"""How the sagas of a project are named."""


def check_deliveries(at: Workshop) -> Observed:
    """Read everything and assert; Temporal and the workers still run. What is under way may be open."""
    seen = asyncio.run(look_at_deliveries(at))
    check_approvals(seen)
    check_compensations(seen)
    check_lanes(seen)
    check_units(seen)
    check_projects(seen)
    check_secrets(seen)
    return seen


def check_approvals(seen: Observed) -> None:
    """I3: no traffic without an earlier approval of that artefact in the same case, and that one is valid."""
    artifacts: dict[int, set[str]] = {}
    for case, events in seen.cases.items():
        for number, event in enumerate(events):
            if event.kind != "release.switched":
                continue
            earlier, artifact = events[:number], event.data["artifact"]
            approved = [e for e in earlier if e.kind == "release.approved" and e.data["artifact"] == artifact]
            assert approved, f"release {event.data['release']} of {case} was switched to, and nobody approved it"
            assert any(is_valid(each, earlier) for each in approved), f"{case}: {approved[-1].data} is no approval"
            built = [e.data["artifact"] for e in earlier if e.kind == "artifact.built"]
            assert artifact in built, f"{case} switched to an artefact that it never built"
            artifacts.setdefault(event.data["release"], set()).add(artifact)
    for path, order in seen.orders.items():
        if path.parent.parent.name == "production" and _is_live(seen, path):
            assert order["artifact"] in artifacts.get(int(path.parent.name), set()), f"{path} serves unapproved"


def is_valid(approval: Event, earlier: Sequence[Event]) -> bool:
    """Whether the policy allowed it, or a person whose answer was accepted."""
    before = earlier[: next(n for n, event in enumerate(earlier) if event is approval)]
    scored = [event for event in before if event.kind == "risk.scored"]
    if approval.data["how"] == "policy":
        return bool(scored) and scored[-1].data["action"] == AUTONOMOUS
    if approval.data["how"] == "beforehand":
        return bool(scored) and scored[-1].data["risk"] <= MOST_RISK
    asks = [e.data["id"] for e in before if e.kind == "ask.opened" and e.data["digest"] == approval.data["digest"]]
    answers = [e.data for e in before if e.kind == "ask.closed" and e.data["id"] in asks]
    return any(answer["choice"] == "approve" and answer["by"] == approval.data["by"] for answer in answers)


def check_compensations(seen: Observed) -> None:
    """I4: each one of an ended delivery is closed; what failed is told, and then nothing is called rolled back."""
    for release in seen.releases:
        records = [record for record in seen.undo if record.saga == release.saga]
        if release.status == OPEN:
            continue
        failed = [record for record in records if record.outcome.startswith("failed: ")]
        assert bool(failed) == (release.status == UNCLEAR), f"{release.saga} is {release.status}: {failed}"
        told = " ".join(release.record.get("residues", ()))
        for record in records:
            assert record in failed or record.outcome == _meant(release), (release.status, record)
            assert record not in failed or f"{record.action}: " in told, f"nobody is told of {record}"
    for (saga, _), history in seen.histories.items():
        for request, ended in compensated(history).items():
            assert ended <= 1, f"{saga} went through {request} {ended} times"


def _meant(release: Release) -> str:
    stays = release.status == PROMOTED or (release.kind == "rollback" and release.status == ROLLED_BACK)
    return "final" if stays else "undone"


def compensated(history: WorkflowHistory) -> Counter[str]:
    """How often each compensation of a run came to its end: once, or it was repeated after it was finished."""
    begun: dict[int, str] = {}
    ended: Counter[str] = Counter()
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name in COMPENSATIONS:
            begun[event.event_id] = f"{scheduled.activity_type.name} {scheduled.input.payloads[0].data.decode()}"
        done = event.activity_task_completed_event_attributes.scheduled_event_id
        if done in begun:
            ended[begun[done]] += 1
    return ended


def check_lanes(seen: Observed) -> None:
    """I5: nobody holds or waits for a lane, and no release is under way, without a workflow that runs."""
    for project, lane in seen.lanes.items():
        holder = lane["holder"]
        assert holder is None or holder["place"]["saga"] in seen.running, f"{project} is held by {holder}"
        for place in lane["queue"]:
            assert place["saga"] in seen.running, f"{place['saga']} waits for {project} and does not run"
        frozen = [r for r in seen.releases if r.project == project and r.status in (ROLLED_BACK, UNCLEAR)]
        assert lane["frozen"] is None or frozen, f"{project} is frozen, and nothing was rolled back"
    for release in seen.releases:
        assert release.status != OPEN or release.saga in seen.running, f"{release.saga} is open and does not run"
    for name in seen.running:
        assert not name.endswith("-watch") or name.removesuffix("-watch") in seen.running, f"{name} has lost its saga"


def check_units(seen: Observed) -> None:
    """I5, I10: what lies and runs on the target belongs to a release that may; what serves is what the record says."""
    status = {(release.project, release.number): release for release in seen.releases}
    for site in seen.overview.sites:
        for unit in site.units:
            release = status.get((site.project, unit.release))
            where = f"release {unit.release} of {site.project} on {site.environment}"
            assert release is not None, f"{where} is in no record"
            assert release.status in (OPEN, PROMOTED, UNCLEAR), f"{where} is {release.status}, and still there"
        lane = seen.lanes.get(site.project, {})
        if site.environment == "production" and lane and not lane["holder"] and not lane["frozen"]:
            live = lane["current"]["number"] if lane["current"] else 0
            assert site.live == live, f"the lane of {site.project} says {live}, its traffic goes to {site.live}"
    names = {f"{s.project}.{s.environment}.{u.release}.ini" for s in seen.overview.sites for u in s.units}
    left = {name for name in seen.programs if not name.endswith(".proxy.ini")} - names
    assert not left or _under_way(seen) or _unclear(seen), f"programs of nobody: {left}"


def check_projects(seen: Observed) -> None:
    """I7: what belongs to a project names no other one, and nothing is shared."""
    names = list(seen.settings.allowlist())
    for project in names:
        others = [name for name in names if name != project]
        for release in seen.releases:
            if release.project == project:
                assert not named(others, f"{release.saga} {json.dumps(dict(release.record))}"), release
        for path, order in seen.orders.items():
            if path.parents[2].name == project:
                text = json.dumps(order)
                assert not named(others, text), path
                assert not [name for name in others if f"/{name}/" in text], path
        for name, text in seen.programs.items():
            if name.startswith(f"{project}."):
                words = text.replace(":", " ")
                assert not [other for other in others if f" {other}/" in words or f" {other}." in words], name
    folders = {path.parents[2].name for path in seen.orders}
    assert folders <= set(names), f"folders of projects that are not there: {folders}"
    for shared in ("port", "uid"):
        values = Counter(order[shared] for order in seen.orders.values() if shared == "port" or os.geteuid() == 0)
        assert not [value for value, times in values.items() if times > 1], f"two releases share their {shared}"


def named(projects: Iterable[str], text: str) -> list[str]:
    """Those whose sagas the text names."""
    return [project for project in projects if re.search(NAMED.format(re.escape(project)), text)]


def check_stopped(at: Workshop, *, seconds: float = 60) -> None:
    """I10: nothing of a target runs after it was stopped."""
    wait_for(lambda: not serving(at), seconds=seconds, why="the end of everything that served")


def _is_live(seen: Observed, path: Path) -> bool:
    project, environment, release = path.parts[-4:-1]
    sites = seen.overview.sites
    return any((s.project, s.environment, str(s.live)) == (project, environment, release) for s in sites)


def _under_way(seen: Observed) -> bool:
    return any(release.status == OPEN for release in seen.releases)


def _unclear(seen: Observed) -> bool:
    return any(release.status == UNCLEAR for release in seen.releases)
