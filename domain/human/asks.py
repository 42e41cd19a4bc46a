"""What a person decides, and what a person answered: plain values, decoded forgivingly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.build.requests import decode
from domain.errors import InvalidInput

DIGITS = 8
"""How much of a digest an answer has to name."""
LONGEST = 2_000

APPROVAL = ("approve", "reject")
STUCK = ("retry", "raise", "skip", "take", "abort")
UNKNOWN = ("allow", *STUCK)
"""About packages that nobody knows."""
UNSURE = ("retry", "raise", "skip", "abort")
WATCH = ("promote", "extend", "roll_back")
"""About a release that is watched and cannot be judged."""

APPROVED = ("plan", "change", "release", "final")
"""What is approved by its digest; everything else that is asked is a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Something that waits for a person. ``about`` is plan, change, release or final (approvals), task, review,
    landing, budget or watch (questions); ``digest`` names the packet that it is about. ``opened`` and ``deadline`` are
    ms since 1970."""

    id: str
    about: str
    digest: str
    sentence: str
    choices: tuple[str, ...]
    opened: int
    deadline: int
    task: str = ""

    @property
    def kind(self) -> str:
        """An approval is bound to its digest, a question to its id."""
        return "approval" if self.about in APPROVED else "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``reason`` is why something is rejected, or the hint of a retry; budgets in USD, 0 for unchanged."""

    choice: str = ""
    digest: str = ""
    ask: str = ""
    by: str = ""
    reason: str = ""
    commit: str = ""
    attempts: int = 0
    task_budget: float = 0.0
    build_budget: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The texts of a saying."""

    by: str = ""
    reason: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """What needs no ask: who says it, and why; ``plan`` is for those who replace one."""

    by: str = ""
    reason: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)


def decode_saying(raw: Any) -> Saying:
    """Raises InvalidInput with one sentence."""
    if not isinstance(raw, Mapping):
        raise InvalidInput("the input has to be one JSON object")
    plan = raw.get("plan", {})
    if not isinstance(plan, Mapping):
        raise InvalidInput("the field 'plan' has to be an object")
    said = decode(Words, {name: value for name, value in raw.items() if name != "plan"})
    return Saying(by=one_line(said.by)[:100] or "unknown", reason=one_line(said.reason)[:LONGEST], plan=plan)


def decode_answer(raw: Any, *, choice: str = "") -> Answer:
    """``choice`` is that of a handler that stands for one. Raises InvalidInput with one sentence."""
    if isinstance(raw, Mapping) and choice:
        raw = {**raw, "choice": choice}
    answer = decode(Answer, raw)
    known = APPROVAL if choice in APPROVAL else (*UNKNOWN, *WATCH)
    if answer.choice not in known:
        raise InvalidInput(f"unknown choice {answer.choice[:40]!r}; known: {', '.join(known)}")
    digest = answer.digest.strip().lower()
    if choice and (len(digest) < DIGITS or any(c not in "0123456789abcdef" for c in digest)):
        raise InvalidInput(f"name at least {DIGITS} hex digits of the digest that you {choice}")
    if min(answer.attempts, answer.task_budget, answer.build_budget) < 0:
        raise InvalidInput("attempts and budgets cannot be below 0")
    if max(map(len, (answer.reason, answer.by, answer.commit, answer.ask))) > LONGEST:
        raise InvalidInput(f"an answer's texts may have at most {LONGEST} characters")
    return Answer(
        choice=answer.choice,
        digest=digest,
        ask=answer.ask.strip(),
        by=one_line(answer.by)[:100] or "unknown",
        reason=answer.reason.strip(),
        commit=answer.commit.strip(),
        attempts=answer.attempts,
        task_budget=answer.task_budget,
        build_budget=answer.build_budget,
    )


def whole(value: Any) -> int:
    """A number from 0 that somebody sent, 0 for anything else: a signal that does not decode would be lost."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def one_line(text: str) -> str:
    """Printable characters only: names and reasons are shown on terminals."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def how(build: str, ask: Ask) -> dict[str, str]:
    """The command for each choice of an ask; ``build`` is the saga that asks."""
    if ask.kind == "approval":
        digest = ask.digest[:12]
        return {
            "approve": f"mendwork approve {build} {digest}",
            "reject": f"mendwork reject {build} {digest} --reason '…'",
        }
    budget = " --task-budget USD" if ask.task else " --build-budget USD"
    options = {"retry": " --hint '…'", "raise": budget, "take": " --commit BRANCH"}
    return {choice: f"mendwork answer {build} {ask.id} {choice}{options.get(choice, '')}" for choice in ask.choices}
