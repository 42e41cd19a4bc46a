"""What a build's event log tells, read from ``mendwork trace --jsonl``: who worked beside whom, what was sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.cli.release.series import Moments, drawn
from domain.trace.delivery.series import points_of

from .checks import Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBack:
    """A task's green work that was refused after all; ``mended`` when it was merged later."""

    task: str
    why: str
    sentence: str
    mended: bool


class Story:
    """The events of one build, in the order of time."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events = events

    @classmethod
    def of(cls, lines: str) -> Story:
        """From JSON lines."""
        return cls([json.loads(line) for line in lines.splitlines()])

    def side_by_side(self) -> tuple[str, ...]:
        """The most tasks that were at work at one time."""
        at_work: dict[str, None] = {}
        most: tuple[str, ...] = ()
        for event in self._events:
            if event["kind"] == "task.started":
                at_work[event["task"]] = None
            elif event["kind"] == "task.ended":
                at_work.pop(event["task"], None)
            most = max(most, tuple(at_work), key=len)
        return most

    def sent_back(self, why: str = "") -> list[SentBack]:
        """What was sent back, or what was for that reason ("conflict", "red", "finding")."""
        return [sent for sent in self._sent_back() if why in ("", sent.why)]

    def models(self, role: str) -> set[str]:
        """Who answered in that role."""
        return {e["data"]["model"] for e in self._of("call.answered") if e["data"].get("role") == role}

    def serious(self) -> int:
        """How many high findings the last review left; -1 when there was none."""
        return next((int(e["data"]["high"]) for e in reversed(list(self._of("review.ended")))), -1)

    def approved(self) -> str:
        """The digest that was approved as the change, "" when none was."""
        asks = {e["data"]["id"]: e["data"] for e in self._of("ask.opened") if e["data"]["about"] == "change"}
        closed = [e["data"] for e in self._of("ask.closed") if e["data"]["choice"] == "approve"]
        return next((asks[data["id"]]["digest"] for data in reversed(closed) if data["id"] in asks), "")

    def series(self) -> list[tuple[str, str]]:
        """The picture of the watch so far: rows of text, each with a style."""
        points = points_of([event["data"] for event in self._of("watch.window")])
        release = next((int(event["data"]["release"]) for event in self._of("release.switched")), 0)
        return [(row.text, row.style) for row in drawn(points, Moments(switched=release))]

    def _sent_back(self) -> Iterator[SentBack]:
        for number, event in enumerate(self._events):
            if event["kind"] == "task.sent_back":
                merged = (e["kind"] == "task.merged" and e["task"] == event["task"] for e in self._events[number:])
                yield SentBack(
                    task=event["task"],
                    why=event["data"]["why"],
                    sentence=event["data"]["sentence"],
                    mended=any(merged),
                )

    def _of(self, kind: str) -> Iterator[Mapping[str, Any]]:
        return (event for event in self._events if event["kind"] == kind)


def story_promises(story: Story) -> list[Promise]:
    """Two tasks beside each other, a conflict and a finding sent back and mended, a reviewer that wrote nothing."""
    beside = story.side_by_side()
    conflicts, findings = story.sent_back("conflict"), story.sent_back("finding")
    reviewers, writers = story.models("validation"), story.models("coding")
    return [
        Promise(sentence=f"{' and '.join(beside)} were at work at the same time", holds=len(beside) > 1),
        Promise(sentence="a conflict was sent back and written again on top of the other", holds=_mended(conflicts)),
        Promise(
            sentence="a serious finding was sent back and mended, and the last review finds none",
            holds=_mended(findings) and story.serious() == 0,
        ),
        Promise(
            sentence=f"{', '.join(sorted(reviewers))} reviewed what {', '.join(sorted(writers))} wrote",
            holds=bool(reviewers) and bool(writers) and not reviewers & writers,
        ),
    ]


def _mended(sent_back: list[SentBack]) -> bool:
    return bool(sent_back) and all(sent.mended for sent in sent_back)
