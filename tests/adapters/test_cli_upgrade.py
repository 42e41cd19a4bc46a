"""What is said of a history that the code cannot replay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.upgrade.checking import LONGEST_REASON, reason

REPLAYER = (
    'Workflow activation completion failed: Failure { failure: Some(Failure { message: "[TMPRL1100] Nondeterminism '
    'error: Activity machine does not handle this event: HistoryEvent(id: 5, TimerStarted)", source: "", encoded'
)


def test_the_replayers_own_sentence_is_taken_out_of_its_wrapping() -> None:
    assert reason(REPLAYER) == "Activity machine does not handle this event: HistoryEvent(id: 5, TimerStarted)"


def test_what_is_not_wrapped_is_told_as_it_is() -> None:
    assert reason("RuntimeError:\n  no such field") == "RuntimeError: no such field"


@given(st.text())
def test_a_reason_is_one_line_of_bounded_length(text: str) -> None:
    found = reason(text)
    assert len(found) <= LONGEST_REASON
    assert "\n" not in found
