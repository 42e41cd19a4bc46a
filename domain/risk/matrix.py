"""The escalation matrix: when work goes on by itself, and when it waits for a person. It is data, the same for
deliveries and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ASK, PERSON, DRAFT, AUTONOMOUS = "ask", "person", "draft", "autonomous"
STRICTEST_FIRST = (ASK, PERSON, DRAFT, AUTONOMOUS)

MOST_RISK = 0.7
LEAST_CONFIDENCE = 0.6
MOST_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``figure`` ("risk", "confidence" or "retries") has to be at most, or at least, ``bound``; else ``action``."""

    figure: str
    at_most: bool
    bound: float
    action: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``action`` is "ask" (stop until a person says), "person" (hand it over), "draft" (go on, flagged for review) or
    "autonomous"; ``why`` names every row that matched, with its figures."""

    action: str
    why: str


MATRIX: tuple[Row, ...] = (
    Row(figure="risk", at_most=True, bound=MOST_RISK, action=ASK, what="stop and ask"),
    Row(figure="confidence", at_most=False, bound=LEAST_CONFIDENCE, action=DRAFT, what="a draft with a review flag"),
    Row(figure="retries", at_most=True, bound=MOST_RETRIES, action=PERSON, what="a person, after three retries"),
)


def decide(risk: float, confidence: float, *, retries: int = 0, limit: float = MOST_RISK) -> Decision:
    """The strictest action of all rows that match. ``limit`` is the project's own for the risk: above the matrix's it
    changes nothing. What is not a number matches: nothing goes on by itself because a figure is missing."""
    figures = {"risk": risk, "confidence": confidence, "retries": float(retries)}
    rows = (Row(figure="risk", at_most=True, bound=limit, action=ASK, what="the project's limit"), *MATRIX)
    matched = [row for row in rows if not _holds(row, figures)]
    action = min((row.action for row in matched), key=STRICTEST_FIRST.index, default=AUTONOMOUS)
    said = dict.fromkeys(_said(row, figures) for row in matched)
    return Decision(action=action, why="; ".join(said) or f"risk {risk:.2f}, confidence {confidence:.2f}")


def _holds(row: Row, figures: Mapping[str, float]) -> bool:
    value = figures[row.figure]
    return value <= row.bound if row.at_most else value >= row.bound


def _said(row: Row, figures: Mapping[str, float]) -> str:
    shown = f"{figures[row.figure]:.0f}" if row.figure == "retries" else f"{figures[row.figure]:.2f}"
    side = "above" if row.at_most else "below"
    return f"{row.figure} {shown} is {side} {row.bound:g} ({row.what})"
