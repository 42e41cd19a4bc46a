"""What a planned build would take, from what earlier ones took: plain arithmetic, whose basis is told beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from domain.money.amounts import Amount, Priced, Range, replaced, spread

LISTED = 50
"""How many tasks a forecast lists one by one; its totals hold all."""
GUESSED_CALLS = 2
GUESSED_PROMPTS = 2
GUESSED_OUTPUT = 2_000
GUESSED_SECONDS = 45.0
"""A guess: so many calls a task, each shown so many times what the planner was shown, answered with so many tokens,
so many seconds of model and tests together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What ``builds`` ended builds of the project took: each task that ended, each build's review. ``priced`` are calls
    of any build that tell what a model costs."""

    builds: int = 0
    tasks: tuple[Amount, ...] = ()
    reviews: tuple[Amount, ...] = ()
    priced: tuple[Priced, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What is known of the build itself: tries granted to a task, tokens of its plan's prompt, tokens of an answer at
    most."""

    attempts: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One planned task, and the model that would be asked first."""

    id: str
    title: str
    depends_on: tuple[str, ...]
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskForecast:
    """``model`` is asked on the queue ``asks``; the tests run in ``engine`` on the queue ``tests``."""

    id: str
    title: str
    model: str
    asks: str
    engine: str
    tests: str
    expected: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """``tasks`` are the first LISTED, ``more`` the others; ``totals`` hold all of them and the review. ``basis`` says
    where the numbers come from, ``notes`` what they leave out, ``after`` what follows the tasks."""

    basis: str
    tasks: tuple[TaskForecast, ...]
    more: int
    totals: Range
    after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one task takes, and one review; ``basis`` in a clause."""

    task: Range
    review: Range
    basis: str


def estimate(past: Past, guess: Guess) -> Estimate:
    """From the project's history where there is some, else the stated guess. It knows no prices: see ``priced_as``."""
    if not past.tasks:
        return Estimate(task=_guessed(guess), review=_reviewed(guess), basis=guess_basis(guess))
    review = spread(past.reviews) if past.reviews else _reviewed(guess)
    many = f"{past.builds} {_plural('build', past.builds)}, {len(past.tasks)} {_plural('task', len(past.tasks))}"
    lacking = "" if past.reviews else "; none of them was reviewed: the review is a guess"
    return Estimate(task=spread(past.tasks), review=review, basis=f"history of this project: {many}{lacking}")


def guess_basis(guess: Guess) -> str:
    """The numbers of a guess, said."""
    return (
        f"a guess: no build of this project has ended yet: {_guessed_calls(guess)} calls a task, "
        f"{GUESSED_PROMPTS * guess.prompt_tokens} tokens in and {_guessed_output(guess)} out a call, "
        f"{GUESSED_SECONDS:g} s a call with its tests"
    )


def longest_chain(work: Sequence[Work]) -> int:
    """How many tasks have to be done one after the other at least. ``work`` is in an order in which it can run."""
    depth: dict[str, int] = {}
    for task in work:
        depth[task.id] = 1 + max((depth.get(name, 0) for name in task.depends_on), default=0)
    return max(depth.values(), default=0)


def together(work: Sequence[Work], each: Mapping[str, Range]) -> Range:
    """All tasks of ``work``; ``each`` is by the task's model. Seconds are of the longest chain, tasks side by side; at
    worst, of all tasks one after the other."""
    nothing = Amount()
    total = Range(low=nothing, expected=nothing, high=nothing)
    for task in work:
        total = total + each[task.model]
    chain = Fraction(longest_chain(work), max(len(work), 1))
    return Range(low=_shortened(total.low, chain), expected=_shortened(total.expected, chain), high=total.high)


def _shortened(amount: Amount, share: Fraction) -> Amount:
    return replaced(amount, seconds=round(amount.seconds * float(share), 3))


def _guessed(guess: Guess) -> Range:
    return Range(
        low=_calls(guess, 1),
        expected=_calls(guess, _guessed_calls(guess)),
        high=_calls(guess, max(guess.attempts, 1)),
    )


def _reviewed(guess: Guess) -> Range:
    once = _calls(guess, 1)
    return Range(low=once, expected=once, high=once)


def _calls(guess: Guess, count: int) -> Amount:
    return Amount(
        calls=count,
        input_tokens=count * GUESSED_PROMPTS * guess.prompt_tokens,
        output_tokens=count * _guessed_output(guess),
        seconds=count * GUESSED_SECONDS,
        cost_micros=None,
    )


def _guessed_calls(guess: Guess) -> int:
    return min(GUESSED_CALLS, max(guess.attempts, 1))


def _guessed_output(guess: Guess) -> int:
    return min(GUESSED_OUTPUT, guess.output_tokens)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
