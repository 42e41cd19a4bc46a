"""The message of a task's commit."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SUBJECT = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """Who made a change: which build's task, which model's answer, which attempt."""

    build: str
    task: str
    model: str
    attempt: int


def commit_message(summary: str, title: str, made: Authorship) -> str:
    """Subject from the model's summary, or the task's title; trailers from us.

    The summary is untrusted: it becomes one printable line, so that it cannot forge a trailer.
    """
    subject = _line(summary) or _line(title) or made.task
    if len(subject) > MAX_SUBJECT:
        subject = subject[: MAX_SUBJECT - 1].rstrip() + "…"
    return (
        f"{subject}\n\n"
        f"Mendwork-Build: {made.build}\n"
        f"Mendwork-Task: {made.task}\n"
        f"Mendwork-Model: {made.model}\n"
        f"Mendwork-Attempt: {made.attempt}\n"
    )


def _line(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return "".join(c for c in first if c.isprintable()).strip()
