"""The book of asks: which answer counts. First come, first served; every answer gets a reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.human.asks import Answer, Ask

MOST_EARLY = 20
MOST_CLOSED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """An ask that is over: ``choice`` is the answer's, "expired" or "superseded"."""

    id: str
    digest: str
    choice: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """``outcome`` is "accepted", "early" (kept until its ask is there) or "refused"; ``reason`` is for the person."""

    outcome: str
    reason: str
    ask: str = ""


@dataclass(slots=True, kw_only=True)
class Book:
    """``answers`` are those that were accepted and not acted on yet, by the ask's id."""

    open: dict[str, Ask] = field(default_factory=dict)
    closed: list[Closed] = field(default_factory=list)
    early: list[Answer] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    def opening(self, ask: Ask) -> Answer | None:
        """Open ``ask``; return the early answer that decides it at once, if one came."""
        self.open[ask.id] = ask
        for answer in self.early:
            if _matches(answer.digest, ask.digest) and answer.choice in ask.choices:
                self.early.remove(answer)
                self._accept(ask, answer)
                return answer
        return None

    def receive(self, answer: Answer) -> Ruling:
        """Rule on one answer. A digest binds an approval; a question goes by its id, or is the only one open."""
        ask = self._asked(answer)
        if ask is None:
            return self._unasked(answer)
        if answer.choice not in ask.choices:
            return _refused(f"{ask.id} can be answered by {', '.join(ask.choices)}, not by {answer.choice}", ask.id)
        if answer.choice == "reject" and not answer.reason:
            where = ": it goes back into planning" if ask.about in ("plan", "change") else ""
            return _refused(f"a rejection needs a reason{where}", ask.id)
        if answer.choice == "take" and not answer.commit:
            return _refused("taking over needs a commit: a branch or a SHA of the repository", ask.id)
        self._accept(ask, answer)
        return Ruling(outcome="accepted", reason=f"{answer.choice} accepted", ask=ask.id)

    def close(self, ask_id: str, choice: str, by: str = "") -> None:
        """Nobody can answer it any more."""
        ask = self.open.pop(ask_id, None)
        if ask is not None:
            self.closed = [*self.closed, Closed(id=ask.id, digest=ask.digest, choice=choice, by=by)][-MOST_CLOSED:]

    def _accept(self, ask: Ask, answer: Answer) -> None:
        self.answers[ask.id] = answer
        self.close(ask.id, answer.choice, answer.by)

    def _asked(self, answer: Answer) -> Ask | None:
        if answer.digest:
            return next((a for a in self.open.values() if _matches(answer.digest, a.digest)), None)
        if answer.ask:
            return self.open.get(answer.ask)
        questions = [ask for ask in self.open.values() if ask.kind == "question"]
        return questions[0] if len(questions) == 1 else None

    def _unasked(self, answer: Answer) -> Ruling:
        over = next((c for c in reversed(self.closed) if _is_about(answer, c)), None)
        if over is not None:
            return _refused(_too_late(over, answer), over.id)
        waiting = [ask for ask in self.open.values() if (ask.kind == "approval") == bool(answer.digest)]
        if answer.digest and waiting:
            shown = ", ".join(f"{ask.id} with digest {ask.digest[:12]}" for ask in waiting)
            return _refused(f"stale: nothing with the digest {answer.digest[:12]} waits; what waits is {shown}")
        if answer.digest:
            return self._keep(answer)
        names = ", ".join(ask.id for ask in waiting) or "none"
        return _refused(f"name the question that you answer; open: {names}")

    def _keep(self, answer: Answer) -> Ruling:
        if any(early.digest == answer.digest and early.choice == answer.choice for early in self.early):
            return _refused("duplicate: the same answer waits for its question already")
        if len(self.early) >= MOST_EARLY:
            return _refused(f"{MOST_EARLY} answers wait for their questions already")
        self.early.append(answer)
        return Ruling(outcome="early", reason="nothing waits for it yet; it counts if that digest is asked for")


def _matches(named: str, digest: str) -> bool:
    return bool(named) and digest.startswith(named)


def _is_about(answer: Answer, closed: Closed) -> bool:
    return _matches(answer.digest, closed.digest) if answer.digest else answer.ask == closed.id


def _too_late(over: Closed, answer: Answer) -> str:
    if over.choice == "expired":
        return f"expired: {over.id} was not answered in time"
    if over.choice == "superseded":
        return f"stale: {over.id} was replaced by a newer one"
    who = f" by {over.by}" if over.by else ""
    if over.choice == answer.choice:
        return f"duplicate: {over.id} was answered {over.choice}{who} already"
    return f"already decided: {over.id} was answered {over.choice}{who}"


def _refused(reason: str, ask: str = "") -> Ruling:
    return Ruling(outcome="refused", reason=reason, ask=ask)
