"""A person's consent to the change: bound to the digest of the packet that shows it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from temporalio import workflow

from workflows.context import Build, Wanted

with workflow.unsafe.imports_passed_through():
    from domain.errors import Escalated
    from domain.flow.board import ENDED, MERGED
    from domain.human.asks import APPROVAL
    from domain.risk.matrix import ASK, DRAFT, PERSON


async def approve(build: Build) -> str:
    """The next phase: landing, or planning again with the reason of the rejection. Raises Escalated."""
    consent = build.admitted.consent
    stop = weighed(build, ASK, PERSON)
    if not stop and ("change" not in consent.approve or "change" in build.request.approved):
        return "land"
    await build.enter("approve")
    lost = missing(build)
    sentence = f"{build.base.commit[:12]}..{build.head.commit[:12]}: {build.state.gates.get('reason', '')}"
    if lost:
        sentence = f"partial, without {', '.join(item['task'] for item in lost)}; {sentence}"
    if stop:
        sentence = f"{stop}; {sentence}"
    wanted = Wanted(about="change", sentence=sentence, choices=APPROVAL, document={})
    answer = await build.decide(wanted, seconds=consent.approval_seconds, digest=await _packet(build, lost))
    if answer.choice == "approve":
        build.state.approved = True
        return "land"
    if answer.choice == "reject":
        build.state.plan_reason = f"{answer.by} rejected the change as it is now: {answer.reason}"
        build.state.review_rounds = 0
        return "plan"
    raise Escalated(f"nobody approved the change within {consent.approval_seconds:g} s; it was not landed")


def weighed(build: Build, *actions: str) -> str:
    """Why the escalation matrix does not leave merged work to itself, "" when it does."""
    states = build.state.tasks
    flagged = [(n, s) for n, s in states.items() if s.status == MERGED and s.action in actions]
    return "; ".join(f"task {name}: {state.why}" for name, state in flagged)[:300]


def missing(build: Build) -> list[dict[str, str]]:
    """What the change lacks, and why."""
    states = build.state.tasks
    return [
        {"task": name, "why": state.sentence[:300]}
        for name, state in states.items()
        if state.status in ENDED and state.status != MERGED
    ]


async def _packet(build: Build, lost: list[dict[str, str]]) -> str:
    state = build.state
    if "change:" in state.asked:
        return ""  # an earlier run asked: its packet is what people see
    document: dict[str, Any] = {
        "about": "change",
        "build": build.name,
        "plan": state.plan,
        "gates": state.gates,
        "findings": state.findings,
        "missing": lost,
        "flags": weighed(build, ASK, DRAFT, PERSON),
        "spent": asdict(await build.spent()),
    }
    packed = await build.pack(document, base=build.base.commit, commit=build.head.commit)
    state.diff = packed.diff
    return packed.digest
