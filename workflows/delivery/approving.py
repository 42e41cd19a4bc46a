"""May it go to production? A computed risk, a matrix that is data, and a person where they say so."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from temporalio import workflow

from workflows.delivery.context import Delivering
from workflows.delivery.steps import gather

with workflow.unsafe.imports_passed_through():
    from activities.delivery.admission import Assessed
    from domain.delivery.project import Step
    from domain.delivery.steps import FINAL
    from domain.errors import Aborted, Escalated
    from domain.human.asks import APPROVAL, Answer
    from domain.risk.confidence import confidence_in
    from domain.risk.formula import score
    from domain.risk.matrix import AUTONOMOUS, MOST_RISK, decide


async def weigh(d: Delivering, assessed: Assessed) -> str:
    """Score the release; return why a person has to be asked, "" when nobody has to."""
    policy = d.admitted.delivery.risk
    evidence = await gather(d, assessed.touched)
    risk, trust = score(evidence, policy), confidence_in(evidence.made)
    decision = decide(risk.value, trust.value, retries=evidence.made.attempts - 1, limit=policy.limit)
    scored: dict[str, Any] = {
        "risk": risk.value,
        "confidence": trust.value,
        "action": decision.action,
        "why": decision.why,
        "terms": [asdict(term) for term in risk.terms],
    }
    d.found.record["risk"] = scored
    d.recorder.note("risk.scored", **scored)
    if "release" in d.admitted.consent.approve and "release" not in d.request.approved:
        return "the project asks before every release"
    if decision.action == AUTONOMOUS:
        return ""
    beforehand = "release" in d.request.approved and risk.value <= MOST_RISK
    return "" if beforehand else decision.why


async def approve(d: Delivering, assessed: Assessed, why: str) -> None:
    """Have the release approved: by the policy, beforehand, or by a person who is shown all of it.

    Raises Aborted when it is rejected, Escalated when nobody answered in time or nobody is there.
    """
    await d.enter("approval")
    found = d.found
    risk = found.record["risk"]
    document = _document(d)
    packed = await d.pack(document, base=assessed.base, commit=found.commit if assessed.base else "")
    how, answer = "policy", Answer(choice="approve", by="the escalation matrix")
    if why:
        how = "person"
        sentence = f"release {found.release} ({found.commit[:12]}) to production: risk {risk['risk']:.2f}; {why}"
        answer = await _consent(d, "release", sentence, packed.digest)
    elif "release" in d.request.approved:
        how, answer = "beforehand", Answer(choice="approve", by=d.request.by or "unknown")
    d.approved("release", answer, packed.digest, how)
    d.recorder.note("release.approved", artifact=found.artifact, digest=packed.digest, by=answer.by, how=how)
    await d.write()


async def approve_final(d: Delivering, step: Step) -> None:
    """A step that cannot be taken back is never begun without a person. Raises Aborted, Escalated."""
    if step.kind != FINAL:
        return
    document = {"about": "final", "step": step.name, "run": list(step.run), "release": d.found.release}
    digest = (await d.pack(document)).digest
    sentence = f"step {step.name!r} of release {d.found.release} cannot be taken back: {' '.join(step.run)[:200]}"
    answer = await _consent(d, "final", sentence, digest)
    d.approved(f"step {step.name}", answer, digest, "person")


async def _consent(d: Delivering, about: str, sentence: str, digest: str) -> Answer:
    if d.request.unattended:
        raise Escalated(f"nobody is there to approve it: {sentence}")
    answer = await d.desk.ask(d.asking(about, sentence, APPROVAL, digest))
    d.attributes.tell(NeedsApproval=False)
    if answer is None or answer.choice == "expired":
        raise Escalated(f"nobody approved it within {d.admitted.consent.approval_seconds:g} s: {sentence}")
    if answer.choice != "approve":
        raise Aborted(f"{answer.by} rejected the {about}: {answer.reason}")
    return answer


def _document(d: Delivering) -> dict[str, Any]:
    found = d.found
    return {
        "about": "release",
        "project": d.admitted.project,
        "release": found.release,
        "commit": found.commit,
        "artifact": found.artifact,
        "replaces": asdict(found.snapshot),
        "build": d.request.build,
        "risk": found.record["risk"],
        "integration": found.record.get("integration", {}),
    }
