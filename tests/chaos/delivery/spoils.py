"""Sound deliveries, spoiled in one way after the other, and which check has to find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from domain.ports.store import Event
from tests.canaries import check_secrets
from tests.chaos.delivery.stage import SECRET, SHOP
from tests.delivered import Observed
from tests.delivery_invariants import check_approvals, check_compensations, check_lanes, check_projects, check_units

OTHER = "till"
PROMOTED, BREACHED = f"deliver-{SHOP}-1", f"deliver-{SHOP}-2"

Spoil = Callable[[Observed], Observed]
Check = Callable[[Observed], None]


def with_rows(seen: Observed, change: Callable[[Event], Event | None]) -> Observed:
    events = [changed for event in seen.cases[PROMOTED] if (changed := change(event))]
    return replace(seen, cases={**seen.cases, PROMOTED: events})


def telling_of(event: Event, kind: str, **data: Any) -> Event:
    return replace(event, data={**event.data, **data}) if event.kind == kind else event


def without_approval(seen: Observed) -> Observed:
    return with_rows(seen, lambda event: None if event.kind == "release.approved" else event)


def with_approval_of_another_artifact(seen: Observed) -> Observed:
    return with_rows(seen, lambda event: telling_of(event, "release.approved", artifact="0" * 64))


def with_approval_afterwards(seen: Observed) -> Observed:
    events = seen.cases[PROMOTED]
    late = [event for event in events if event.kind == "release.approved"]
    return replace(seen, cases={**seen.cases, PROMOTED: [*(e for e in events if e not in late), *late]})


def with_policy_that_wanted_a_person(seen: Observed) -> Observed:
    return with_rows(seen, lambda event: telling_of(event, "release.approved", how="policy"))


def with_person_who_was_never_asked(seen: Observed) -> Observed:
    return with_rows(seen, lambda event: telling_of(event, "release.approved", how="person"))


def with_too_much_risk_for_beforehand(seen: Observed) -> Observed:
    return with_rows(seen, lambda event: telling_of(event, "risk.scored", risk=0.71))


def with_another_artifact_live(seen: Observed) -> Observed:
    return with_orders(seen, f"{SHOP}/production/1", artifact="0" * 64)


def with_outcome(seen: Observed, saga: str, action: str, outcome: str) -> Observed:
    undo = [
        replace(record, outcome=outcome) if (record.saga, record.action) == (saga, action) else record
        for record in seen.undo
    ]
    assert undo != list(seen.undo)
    return replace(seen, undo=undo)


def with_open_compensation(seen: Observed) -> Observed:
    return with_outcome(seen, BREACHED, "retire_unit", "")


def with_failure_that_is_called_rolled_back(seen: Observed) -> Observed:
    return with_outcome(seen, BREACHED, "restore_traffic", "failed: restore_traffic: no")


def with_failure_that_nobody_is_told(seen: Observed) -> Observed:
    return with_release(with_failure_that_is_called_rolled_back(seen), BREACHED, status="unclear")


def with_promoted_release_that_is_undone(seen: Observed) -> Observed:
    return with_outcome(seen, PROMOTED, "restore_traffic", "undone")


def with_compensation_repeated(seen: Observed) -> Observed:
    def again(saga: str, history: WorkflowHistory) -> WorkflowHistory:
        ended = [e for e in history.events if e.activity_task_completed_event_attributes.scheduled_event_id]
        return replace(history, events=[*history.events, *ended]) if saga == BREACHED else history

    return replace(seen, histories={key: again(key[0], history) for key, history in seen.histories.items()})


def with_lane(seen: Observed, **state: Any) -> Observed:
    return replace(seen, lanes={**seen.lanes, SHOP: {**seen.lanes[SHOP], **state}})


def with_holder_that_is_gone(seen: Observed) -> Observed:
    return with_lane(seen, holder={"place": {"saga": PROMOTED}})


def with_queue_of_the_dead(seen: Observed) -> Observed:
    return with_lane(seen, queue=[{"saga": PROMOTED}])


def with_release(seen: Observed, of: str, **fields: Any) -> Observed:
    return replace(seen, releases=[replace(r, **fields) if r.saga == of else r for r in seen.releases])


def with_release_under_way_for_ever(seen: Observed) -> Observed:
    return with_release(seen, BREACHED, status="open")


def with_freeze_without_reason(seen: Observed) -> Observed:
    return with_release(seen, BREACHED, status="undelivered")


def with_watch_of_nobody(seen: Observed) -> Observed:
    return replace(seen, running=[*seen.running, f"{PROMOTED}-watch"])


def with_unit_of_nobody(seen: Observed) -> Observed:
    return replace(seen, releases=[release for release in seen.releases if release.saga != PROMOTED])


def with_unit_of_an_undelivered_release(seen: Observed) -> Observed:
    return with_release(seen, PROMOTED, status="undelivered")


def with_program_of_nobody(seen: Observed) -> Observed:
    return replace(seen, programs={**seen.programs, f"{SHOP}.production.9.ini": ""})


def with_traffic_elsewhere(seen: Observed) -> Observed:
    return with_lane(seen, current={"number": 9}, frozen=None)


def with_orders(seen: Observed, unit: str, **fields: Any) -> Observed:
    orders = {p: {**o, **fields} if str(p.parent).endswith(unit) else o for p, o in seen.orders.items()}
    assert orders != dict(seen.orders)
    return replace(seen, orders=orders)


def with_record_that_names_another_project(seen: Observed) -> Observed:
    return with_release(seen, PROMOTED, record={"note": f"see deliver-{OTHER}-1"})


def with_saga_of_another_project(seen: Observed) -> Observed:
    return with_release(seen, PROMOTED, saga=f"build-{OTHER}-7-release")


def with_order_that_reads_another_project(seen: Observed) -> Observed:
    return with_orders(seen, f"{SHOP}/production/1", run=["cat", f"../../{OTHER}/production/1/order.json"])


def with_program_that_starts_another_project(seen: Observed) -> Observed:
    name = f"{SHOP}.production.1.ini"
    return replace(seen, programs={**seen.programs, name: seen.programs[name].replace(f" {SHOP}/", f" {OTHER}/")})


def with_shared_port(seen: Observed) -> Observed:
    port = next(order["port"] for path, order in seen.orders.items() if OTHER in path.parts)
    return with_orders(seen, f"{SHOP}/production/1", port=port)


def with_folder_of_nobody(seen: Observed) -> Observed:
    path, order = next(iter(seen.orders.items()))
    return replace(
        seen, orders={**seen.orders, path.parents[3] / "nobody/production/1/order.json": {**order, "port": 1, "uid": 1}}
    )


def with_secret_in_the_record(seen: Observed) -> Observed:
    return with_release(seen, PROMOTED, record={"note": seen.at.environment[SECRET]})


def with_secret_in_a_history(seen: Observed) -> Observed:
    event = HistoryEvent(event_id=1)
    event.user_metadata.summary.data = seen.at.environment[SECRET].encode()
    key, history = next(iter(seen.histories.items()))
    return replace(seen, histories={**seen.histories, key: replace(history, events=[*history.events, event])})


SPOILED: Mapping[Spoil, Check] = {
    without_approval: check_approvals,
    with_approval_of_another_artifact: check_approvals,
    with_approval_afterwards: check_approvals,
    with_policy_that_wanted_a_person: check_approvals,
    with_person_who_was_never_asked: check_approvals,
    with_too_much_risk_for_beforehand: check_approvals,
    with_another_artifact_live: check_approvals,
    with_open_compensation: check_compensations,
    with_failure_that_is_called_rolled_back: check_compensations,
    with_failure_that_nobody_is_told: check_compensations,
    with_promoted_release_that_is_undone: check_compensations,
    with_compensation_repeated: check_compensations,
    with_holder_that_is_gone: check_lanes,
    with_queue_of_the_dead: check_lanes,
    with_release_under_way_for_ever: check_lanes,
    with_freeze_without_reason: check_lanes,
    with_watch_of_nobody: check_lanes,
    with_unit_of_nobody: check_units,
    with_unit_of_an_undelivered_release: check_units,
    with_program_of_nobody: check_units,
    with_traffic_elsewhere: check_units,
    with_record_that_names_another_project: check_projects,
    with_saga_of_another_project: check_projects,
    with_order_that_reads_another_project: check_projects,
    with_program_that_starts_another_project: check_projects,
    with_shared_port: check_projects,
    with_folder_of_nobody: check_projects,
    with_secret_in_the_record: check_secrets,
    with_secret_in_a_history: check_secrets,
}
