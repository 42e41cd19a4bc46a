"""Events as lines for a person. Texts of models and repositories lose their control characters here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.cli.release.lines import delivery_text
from domain.money.usage import dollars
from domain.ports.store import Event
from domain.trace.delivery.told import FAMILIES

PHASES = {
    "base": "running the project's own tests on its base",
    "plan": "planning",
    "forecast": "reckoning what the plan would take",
    "review": "reviewing the change",
    "landing": "putting the result on its branch",
    "deliver": "delivering it",
}
STEPS = {"writing": "asking the model", "applying": "applying the change", "testing": "running the tests"}


def plain(text: object) -> str:
    """One printable line: no escape codes, no direction marks, no newlines."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()


def line_of(event: Event) -> str | None:
    """The line that a person sees of an event, or None when it says nothing new to them."""
    where = f"  {plain(event.task)}" + (f" #{event.attempt}" if event.attempt else "") if event.task else ""
    text = _text(event)
    return None if text is None else f"{where}: {text}" if where else text


def _text(event: Event) -> str | None:
    kind, data = event.kind, event.data
    family = kind.partition(".")[0]
    if family in ("ask", "answer", "build", "limits", "target", "money", "snapshot"):
        return _build(kind, data)
    if family in FAMILIES:
        text = delivery_text(kind, data)
        return None if text is None else plain(text)
    if family == "task":
        return _task(kind, data)
    match kind:
        case "attempt.phase":
            return STEPS.get(data["phase"])
        case "call.answered":
            return _answered(data)
        case "call.failed":
            return f"{plain(data['model'])} failed{_faults(data['faults'])}"
        case "phase.anomaly":
            return f"much more than usual: {plain(data['sentence'])}"
        case "plan.refused":
            return f"the plan cannot be used: {plain(data['problems'][0])}"
        case "change.refused":
            return f"the change is refused: {plain(data['reason'])}"
        case "gates.ran":
            what = "" if event.attempt else f"{plain(data.get('label', 'merge'))}: "
            return f"{what}{'green' if data['green'] else 'red'}: {plain(data['reason'])} ({data['seconds']:.1f} s)"
        case "merge.tried" if data.get("conflicts"):
            return "conflicts when merged: " + ", ".join(plain(path) for path in data["conflicts"])
        case "review.ended":
            weak = ", by the model that wrote it" if data.get("weak") else ""
            counts = ", ".join(f"{data.get(severity, 0)} {severity}" for severity in ("high", "medium", "low"))
            return f"reviewed by {plain(data.get('model', '?'))}{weak}: {counts}"
    return None


def _build(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "build.phase":
            return PHASES.get(data["phase"])
        case "build.base":
            return f"base {data['commit'][:12]}: {plain(data['reason'])}"
        case "build.planned":
            return f"{len(data['tasks'])} tasks: " + ", ".join(plain(task["id"]) for task in data["tasks"])
        case "build.forecast":
            from adapters.cli.forecast import line_for  # it imports this file

            return line_for(data["forecast"])
        case "build.ended":
            lacks = "" if data["status"] == "partial" else _missing(data.get("missing", ()))  # its sentence says it
            return f"{data['status']}: {plain(data['sentence'])}{lacks}"
        case "build.paused" | "build.resumed":
            return f"{kind.removeprefix('build.')} by {plain(data.get('by', 'unknown'))}"
        case "build.restored":
            spent = dollars(int(data.get("spent") or 0))
            return f"goes on from {plain(data['token'])}, before {plain(data['phase'])}; {spent} was spent by then"
        case "snapshot.skipped":
            return f"no snapshot could be taken after {plain(data['after'])}: {plain(data['sentence'])}"
        case "build.continued":
            return "its history is long: it goes on in a new run"
        case "build.taken":
            return f"taken over by hand: {data['commit'][:12]}"
        case "ask.opened":
            return f"waits for an answer: {plain(data['sentence'])} ({data['id']}, digest {data['digest'][:12]})"
        case "ask.closed":
            return _closed(data)
        case "answer.refused":
            return f"refused: {plain(data['choice'] or 'an answer')} by {_by(data)}: {plain(data['reason'])}"
        case "money.warned" | "target.left":
            return plain(data["sentence"])
        case "limits.raised":
            return f"limits are raised by {_by(data)}: {_raised(data)}"
        case "target.forwarded":
            return f"the target branch is forwarded from {data['old'][:12]} to {data['new'][:12]}"
    return None


def _task(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "task.ended":
            return _ended(data)
        case "task.merged":
            return f"merged as {data['commit'][:12]}"
        case "task.sent_back":
            return f"sent back ({plain(data['why'])}, {data['times']}.): {plain(data['sentence'])}"
        case "task.skipped":
            return f"skipped: {plain(data.get('sentence', ''))}"
        case "task.blocked":
            return f"cannot be done without {plain(data['by'])}"
        case "task.waits":
            return f"waits until {plain(data['holder'])} has written {', '.join(map(plain, data['files']))}"
    return None


def _answered(data: Mapping[str, Any]) -> str:
    usage = data["usage"]
    cost = "unknown cost" if usage["cost_micros"] is None else dollars(usage["cost_micros"])
    tokens = f"{usage['input_tokens']} + {usage['output_tokens']} tokens, {cost}"
    problem = f"; it does not fit: {plain(data['problems'][0])}" if data["problems"] else ""
    return f"{plain(data['model'])} answered ({tokens}){_faults(data['faults'])}{problem}"


def _ended(data: Mapping[str, Any]) -> str | None:
    if data["status"] in ("succeeded", "green"):
        return f"committed as {data['commit'][:12]}"
    return f"{data['status']}: {plain(data.get('sentence', ''))}"


def _closed(data: Mapping[str, Any]) -> str:
    if data["choice"] in ("expired", "superseded"):
        return f"{data['id']} is {data['choice']}"
    reason = f": {plain(data['reason'])}" if data.get("reason") else ""
    return f"{data['id']} is answered: {plain(data['choice'])} by {_by(data)}{reason}"


def _by(data: Mapping[str, Any]) -> str:
    return plain(data.get("by", "")) or "somebody"


def _raised(data: Mapping[str, Any]) -> str:
    return ", ".join(f"{plain(name)} {plain(value)}" for name, value in data.items() if name != "by" and value)


def _missing(missing: Any) -> str:
    texts = [f"{plain(each.get('task', ''))} ({plain(each.get('why', ''))})" for each in missing]
    return f"; missing: {', '.join(texts)}" if texts else ""


def _faults(faults: list[Mapping[str, Any]]) -> str:
    if not faults:
        return ""
    return ", after " + ", ".join(f"{fault['kind']} ({plain(fault['sentence'])})" for fault in faults)
