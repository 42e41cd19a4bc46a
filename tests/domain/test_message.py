"""The message of a task's commit names task, model and attempt, whatever the model says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.build.message import MAX_SUBJECT, Authorship, commit_message

MADE = Authorship(build="build-x-1", task="api", model="coder", attempt=2)


def test_a_commit_names_its_task_model_and_attempt() -> None:
    assert commit_message("Add tags", "Tags", MADE) == (
        "Add tags\n\nMendwork-Build: build-x-1\nMendwork-Task: api\nMendwork-Model: coder\nMendwork-Attempt: 2\n"
    )


def test_an_empty_summary_gives_way_to_the_plans_title_and_then_the_task() -> None:
    assert commit_message("\n \n", "Tags", MADE).startswith("Tags\n\n")
    assert commit_message("", "", MADE).startswith("api\n\n")


@given(st.text(), st.text())
def test_no_summary_can_forge_a_trailer_or_run_over_its_line(summary: str, title: str) -> None:
    subject, blank, *trailers = commit_message(summary, title, MADE).split("\n")
    assert 0 < len(subject) <= MAX_SUBJECT
    assert blank == ""
    assert [line.split(":")[0] for line in trailers[:-1]] == [
        "Mendwork-Build",
        "Mendwork-Task",
        "Mendwork-Model",
        "Mendwork-Attempt",
    ]
