"""What waits, or waited, for a person: as the log tells it, and the commands that answer it."""

from __future__ import annotations

from dataclasses import dataclass

from domain.human.asks import APPROVED, Ask, how
from domain.ports.store import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class AskDetails:
    """Times in ms since 1970; ``closed`` 0 and ``choice`` "" while it is open. ``kind`` is approval or question.
    ``saga`` is the workflow that asks, "" for the build itself."""

    id: str
    about: str
    kind: str
    digest: str
    sentence: str
    choices: tuple[str, ...]
    opened: int
    deadline: int
    task: str = ""
    closed: int = 0
    choice: str = ""
    by: str = ""
    reason: str = ""
    saga: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it still waits."""
        return not self.closed


def opened(event: Event) -> AskDetails:
    """The ask that an ``ask.opened`` tells of."""
    data = event.data
    about = str(data.get("about", ""))
    return AskDetails(
        id=str(data["id"]),
        about=about,
        kind=str(data.get("kind") or ("approval" if about in APPROVED else "question")),
        digest=str(data.get("digest", "")),
        sentence=str(data.get("sentence", "")),
        choices=tuple(map(str, data.get("choices", ()))),
        opened=event.at,
        deadline=int(data.get("deadline") or 0),
        task=event.task or str(data.get("task", "")),
        saga=str(data.get("saga", "")),
    )


def commands(build: str, ask: AskDetails) -> tuple[str, ...]:
    """The commands that answer it, one for each choice: said to the saga that asks."""
    asked = Ask(
        id=ask.id,
        about=ask.about,
        digest=ask.digest,
        sentence=ask.sentence,
        choices=ask.choices,
        opened=ask.opened,
        deadline=ask.deadline,
        task=ask.task,
    )
    return tuple(how(ask.saga or build, asked).values())
