"""A release: snapshot, artefact, staging, tests, risk, approval, production, watch; promoted, or proven back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, FailureError, is_cancelled_exception

from workflows.delivery import production, steps
from workflows.delivery.approving import approve, weigh
from workflows.delivery.context import Delivering
from workflows.delivery.talk import DeliveryTalk
from workflows.faults import failure, last_fault
from workflows.policies import DEPLOY, to_its_end

with workflow.unsafe.imports_passed_through():
    from activities.delivery.deploys import Deploys, SiteInput
    from domain.build.names import check_build_name
    from domain.delivery.lane import lane_id
    from domain.delivery.requests import ROLLBACK, Delivered, decode_delivery_request
    from domain.errors import MendworkError
    from domain.ports.releases import PROMOTED, ROLLED_BACK, UNCLEAR, UNDELIVERED
    from domain.ports.target import PRODUCTION
    from domain.recovery.fault import Fault

OUTCOMES = {PROMOTED: "promoted", ROLLED_BACK: "rolled back", UNDELIVERED: "untouched", UNCLEAR: "unclear"}
"""What the lane is told of each status."""


@workflow.defn(failure_exception_types=[MendworkError])
class DeliverySaga(DeliveryTalk):
    """Owns one release and its undo. Its workflow id is ``<build>-release``, or ``deliver-<project>-<n>`` alone."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        # People may speak before ``run`` has looked at its request.
        name = workflow.info().workflow_id
        build = request.get("build") if isinstance(request, Mapping) else ""
        self._delivery = Delivering(name=name, case=build if isinstance(build, str) and build else name)
        self._status = "running"

    @workflow.run
    async def run(self, request: Any = None) -> Delivered:
        """Takes a DeliveryRequest as plain JSON. Returns when the release is promoted, or when a rollback that was
        asked for is proven; fails typed with one sentence otherwise, after what it did is undone."""
        delivery = self._delivery
        check_build_name(delivery.case)
        delivery.request = decode_delivery_request(request)
        self._main = asyncio.current_task()
        try:
            await (self._go_back if delivery.request.kind == ROLLBACK else self._deliver)(delivery)
            delivery.effects.heed_cancellation()
            delivery.effects.shield()
        except (ActivityError, ChildWorkflowError, MendworkError, asyncio.CancelledError) as error:
            await to_its_end(self._fail(delivery, error))
        return await to_its_end(self._succeed(delivery))

    @workflow.query(description="The phase, the status, the release and its place in the lane.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        d = self._delivery
        return {"phase": d.phase, "status": self._status, "release": d.found.release, "lane": asdict(d.lane)}

    @workflow.query(description="What waits for a person, and how to answer it.")
    def pending(self) -> list[dict[str, Any]]:
        """Small and pure."""
        return self._delivery.desk.shown(self._delivery.name)

    async def _deliver(self, d: Delivering) -> None:
        await steps.admit(d)
        await steps.join(d)
        await steps.snapshot(d)
        assessed = await steps.assess(d)
        await steps.build(d)
        await steps.stage(d)
        await steps.integrate(d)
        await approve(d, assessed, await weigh(d, assessed))
        await production.run_beside(d)
        await production.switch(d)
        await production.watch(d)

    async def _go_back(self, d: Delivering) -> None:
        await steps.admit(d)
        await steps.join(d)
        await steps.snapshot(d)
        await production.go_back(d)

    async def _succeed(self, d: Delivering) -> Delivered:
        await d.undo.close_all()
        release, rolled = d.found.release, d.request.kind == ROLLBACK
        if rolled:
            to = d.found.record["proof"]["release"]
            status, sentence = ROLLED_BACK, f"release {d.request.release} is taken back; production has release {to}"
        else:
            status, sentence = PROMOTED, f"release {release} serves production of {d.admitted.project}"
            d.recorder.note("release.promoted", release=release)
            with contextlib.suppress(ActivityError):  # old folders are tidiness, not success
                await production.prune(d)
        return await self._end(d, status, sentence, ())

    async def _fail(self, d: Delivering, error: BaseException) -> None:
        """Undo what was done, and raise what the saga ends with."""
        cancelled, fault = is_cancelled_exception(error), last_fault(error)
        if cancelled:
            fault = replace(fault, kind="Aborted", sentence=self._aborted or "it was cancelled")
        d.effects.shield()
        await self._enter_undo(d)
        residues = await d.undo.undo_all()
        # A rollback that failed and was undone has changed nothing: the release that it was about serves on.
        status = ROLLED_BACK if d.found.switching and d.request.kind != ROLLBACK else UNDELIVERED
        if residues:
            status, residues = UNCLEAR, (*residues, *await self._by_hand(d))
        elif status == ROLLED_BACK:
            await self._note_back(d, fault)
        sentence = fault.sentence + ("; could not be undone: " + "; ".join(residues) if residues else "")
        await self._end(d, status, sentence, residues, fault.kind)
        if cancelled and not self._aborted:
            raise error
        raise failure(replace(fault, sentence=sentence[:1_000])) from error

    async def _enter_undo(self, d: Delivering) -> None:
        with contextlib.suppress(MendworkError):
            await d.enter("undo")

    async def _note_back(self, d: Delivering, fault: Fault) -> None:
        """Traffic is where it was, which its compensation has looked at from outside."""
        to = d.found.snapshot.release
        proof = {"release": to, "ok": True}
        d.found.record["proof"] = proof
        d.recorder.note("release.rolled_back", release=d.found.release, to=to, proof=proof, reason=fault.sentence[:300])

    async def _by_hand(self, d: Delivering) -> tuple[str, ...]:
        """The exact state, and what a person can do: nobody has to find it out in the middle of an outage."""
        release, to, project = d.found.release, d.found.snapshot.release, d.admitted.project
        try:
            live = await d.effects.run(
                DEPLOY, Deploys.snapshot_site, SiteInput(project=project, environment=PRODUCTION)
            )
            where = f"production of {project} leads to release {live.release or 'none'} now"
        except ActivityError as error:
            where = f"nobody can tell where production of {project} leads: {last_fault(error).sentence}"
        how = f"see `mendwork target status`, then `mendwork rollback {release} --project {project} --to {to}`"
        return where, how

    async def _end(
        self, d: Delivering, status: str, sentence: str, residues: tuple[str, ...], fault: str = ""
    ) -> Delivered:
        self._status = status
        d.desk.close_all()
        d.found.record["residues"] = list(residues)
        d.recorder.note(
            "delivery.ended",
            status=status,
            sentence=sentence[:1_000],
            release=d.found.release,
            residues=list(residues),
            fault=fault,
        )
        workflow.set_current_details(f"**{status}**: {sentence}")
        d.attributes.tell(BuildStatus=status, NeedsApproval=False)
        if d.found.release:
            await d.write(status, sentence)
            await self._leave(d, status, sentence)
        await d.recorder.flush(d.effects)
        delivered = Delivered(
            project=d.request.project,
            release=d.found.release,
            status=status,
            sentence=sentence[:1_000],
            residues=residues,
        )
        await self._report(delivered)
        await workflow.wait_condition(workflow.all_handlers_finished)
        await d.recorder.flush(d.effects)
        return delivered

    async def _leave(self, d: Delivering, status: str, sentence: str) -> None:
        """The lane is free again, or frozen; one that is gone looks at what this release left when it starts anew."""
        found, back = d.found, d.request.kind == ROLLBACK
        release = d.request.release if back else found.release
        current = {PROMOTED: found.release}.get(status, found.snapshot.release)
        if status == UNCLEAR:
            current = -1  # nobody can tell
        if back and status == ROLLED_BACK:
            current = found.record["proof"]["release"]
        left = {
            "saga": d.name,
            "run": workflow.info().run_id,
            "outcome": OUTCOMES[status],
            "sentence": sentence[:300],
            "release": {
                "number": release,
                "commit": found.commit,
                "artifact": found.artifact,
                "config": found.config,
            },
            "current": current,
        }
        with contextlib.suppress(FailureError):
            lane = workflow.get_external_workflow_handle(lane_id(d.admitted.project, PRODUCTION))
            await lane.signal("leave", left)

    async def _report(self, delivered: Delivered) -> None:
        """To the build that waits, if there is one and it still does."""
        parent = workflow.info().parent
        if parent is None:
            return
        with contextlib.suppress(FailureError):
            build = workflow.get_external_workflow_handle(parent.workflow_id)
            await build.signal("delivered", asdict(delivered))
