"""Events as lines for a person. Texts of models and repositories lose their control characters here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.money.usage import dollars
from domain.ports.store import Event

PHASES = {
    "base": "running the project's own tests on its base",
    "plan": "planning",
    "landing": "putting the result on its branch",
}
STEPS = {"writing": "asking the model", "applying": "applying the change", "testing": "running the tests"}


def plain(text: object) -> str:
    """One printable line: no escape codes, no direction marks, no newlines."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()


def line_of(event: Event) -> str | None:
    """The line that a person sees of an event, or None when it says nothing new to them."""
    where = f"  {plain(event.task)}" + (f" #{event.attempt}" if event.attempt else "") if event.task else ""
    text = _text(event.kind, event.data)
    return None if text is None else f"{where}: {text}" if where else text


def _text(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "build.phase":
            return PHASES.get(data["phase"])
        case "attempt.phase":
            return STEPS.get(data["phase"])
        case "build.base":
            return f"base {data['commit'][:12]}: {plain(data['reason'])}"
        case "build.planned":
            return f"{len(data['tasks'])} tasks: " + ", ".join(plain(task["id"]) for task in data["tasks"])
        case "call.answered":
            return _answered(data)
        case "call.failed":
            return f"{plain(data['model'])} failed{_faults(data['faults'])}"
        case "plan.refused":
            return f"the plan cannot be used: {plain(data['problems'][0])}"
        case "change.refused":
            return f"the change is refused: {plain(data['reason'])}"
        case "gates.ran":
            return f"{'green' if data['green'] else 'red'}: {plain(data['reason'])} ({data['seconds']:.1f} s)"
        case "task.ended":
            return _ended(data)
        case "build.ended":
            return f"{data['status']}: {plain(data['sentence'])}"
    return None


def _answered(data: Mapping[str, Any]) -> str:
    usage = data["usage"]
    cost = "unknown cost" if usage["cost_micros"] is None else dollars(usage["cost_micros"])
    tokens = f"{usage['input_tokens']} + {usage['output_tokens']} tokens, {cost}"
    problem = f"; it does not fit: {plain(data['problems'][0])}" if data["problems"] else ""
    return f"{plain(data['model'])} answered ({tokens}){_faults(data['faults'])}{problem}"


def _ended(data: Mapping[str, Any]) -> str:
    if data["status"] == "succeeded":
        return f"committed as {data['commit'][:12]}"
    return f"{data['status']}: {plain(data.get('sentence', ''))}"


def _faults(faults: list[Mapping[str, Any]]) -> str:
    if not faults:
        return ""
    return ", after " + ", ".join(f"{fault['kind']} ({plain(fault['sentence'])})" for fault in faults)
