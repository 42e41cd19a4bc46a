"""Order, resets, what waits, the JSON lines, and what a rebuild compares."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.details import DetailsFold, fold_details
from domain.errors import EventUnreadable
from domain.ports.store import Event
from domain.trace.asks import commands, opened
from domain.trace.lines import as_line, from_line
from domain.trace.order import in_order, key_of, undone
from domain.trace.rebuilding import compare
from domain.trace.waiting import only_a_person_helps
from tests.domain.trace_stories import ASK, BUILD, Saga, begun, reset, waiting, whole

KEYS = st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.integers(1, 4))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def keys(events: list[Event]) -> set[Any]:
    return {key_of(event) for event in events}


class TestResets:
    def test_a_log_without_one_has_nothing_undone(self) -> None:
        assert undone(whole()) == frozenset()

    def test_rows_from_the_point_that_it_went_back_to_count_no_more(self) -> None:
        lost = undone(reset())
        assert lost == keys([e for e in whole() if e.run == "run-1" and e.sequence > 8])

    def test_a_reset_of_a_reset_undoes_both_from_there_on(self) -> None:
        first = [Saga("r1").note(1, "build.started", project="p", title="t")]
        first += [Saga("r1", sequence=n).note(n + 1, "build.phase", phase=str(n)) for n in range(1, 5)]
        second = [Saga("r2", first_run="r1", sequence=n).note(n + 10, "build.phase", phase=str(n)) for n in range(2, 6)]
        third = [Saga("r3", first_run="r1", sequence=3).note(99, "build.phase", phase="again")]
        assert undone([*first, *second, *third]) == keys([*first[2:], *second[1:]])

    def test_a_reset_to_the_very_start_undoes_all(self) -> None:
        anew = Saga("run-2", first_run="run-1").note(99_000, "build.started", project="", title="Tags")
        assert undone([*whole(), anew]) == keys([e for e in whole() if e.first_run == "run-1"])

    def test_a_run_that_continues_as_new_counts_from_one_and_undoes_nothing(self) -> None:
        later = Saga("run-2", first_run="run-1")
        assert undone([*waiting(), later.note(99_000, "build.phase", phase="tasks")]) == frozenset()

    def test_only_rows_after_the_last_continuation_are_undone(self) -> None:
        one, two = Saga("r1"), Saga("r2", first_run="r1")
        story = [one.note(n, "build.phase", phase="a") for n in range(5)]
        later = [two.note(10 + n, "build.phase", phase="b") for n in range(4)]
        back = Saga("r3", first_run="r1", sequence=2).note(50, "build.phase", phase="c")
        assert undone([*story, *later, back]) == keys(later[2:])

    def test_details_are_those_of_what_stands_and_money_is_all_that_was_paid(self) -> None:
        details = fold_details(BUILD, reset())
        assert (details.status, details.phase, details.branch, details.target) == ("running", "approve", "", "")
        assert [ask.id for ask in details.open_asks()] == ["q1"]
        assert details.spent == fold_details(BUILD, whole()).spent
        assert [len(task.attempts) for task in details.tasks.values()] == [2, 2]

    def test_an_ask_of_the_undone_part_waits_for_nobody(self) -> None:
        back = Saga("run-2", first_run="run-1", sequence=8).note(50_000, "build.phase", phase="tasks")
        assert fold_details(BUILD, [*waiting(), back]).open_asks() == []


class TestWaiting:
    def test_an_open_approval_is_all_that_a_build_waits_for(self) -> None:
        assert only_a_person_helps(fold_details(BUILD, waiting()))

    @pytest.mark.parametrize("story", [whole(), waiting()[:-1], []], ids=["ended", "before", "empty"])
    def test_without_an_open_ask_nobody_is_waited_for(self, story: list[Event]) -> None:
        assert not only_a_person_helps(fold_details(BUILD, story))

    @pytest.mark.parametrize(
        ("facts", "stuck"),
        [
            ([], False),
            ([("task.merged", {"commit": "m", "ran": 1})], True),
            ([("task.skipped", {"sentence": "no"})], True),
            ([("task.started", {"base": "c"}), ("task.ended", {"status": "green", "commit": "c"})], False),
            ([("task.started", {"base": "c"}), ("task.stuck", {"kind": "k", "sentence": "s"})], True),
        ],
        ids=["could start", "merged", "skipped", "waits for its merge", "stuck too"],
    )
    def test_a_question_of_one_task_waits_for_its_siblings_first(self, facts: Any, stuck: bool) -> None:
        root = Saga("run-1")
        story = [*begun(root), root.note(2000, "task.stuck", task="api", kind="AttemptsExhausted", sentence="red")]
        question: dict[str, Any] = {**ASK, "about": "task", "kind": "question", "choices": ["retry", "skip"]}
        story.append(root.note(2001, "ask.opened", task="api", **question))
        story += [root.note(3000 + n, kind, task="store", **data) for n, (kind, data) in enumerate(facts)]
        assert only_a_person_helps(fold_details(BUILD, story)) is stuck

    def test_the_commands_name_the_build_and_what_they_answer(self) -> None:
        root = Saga("r")
        assert commands(BUILD, opened(root.note(1, "ask.opened", **ASK))) == (
            "mendwork approve build-calc-1 0123456789ab",
            "mendwork reject build-calc-1 0123456789ab --reason '…'",
        )
        stuck: dict[str, Any] = {
            **ASK,
            "about": "task",
            "kind": "question",
            "choices": ["retry", "raise", "skip", "take", "abort"],
        }
        assert commands(BUILD, opened(root.note(1, "ask.opened", task="api", **stuck))) == (
            "mendwork answer build-calc-1 q1 retry --hint '…'",
            "mendwork answer build-calc-1 q1 raise --task-budget USD",
            "mendwork answer build-calc-1 q1 skip",
            "mendwork answer build-calc-1 q1 take --commit BRANCH",
            "mendwork answer build-calc-1 q1 abort",
        )


class TestFoldingAsTheyCome:
    @given(st.sampled_from([whole(), waiting(), reset()]), st.data())
    def test_any_pieces_in_any_order_give_what_the_whole_gives(self, story: list[Event], data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            story = data.draw(st.permutations(story))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(story)), max_size=4)))
        fold = DetailsFold(BUILD)
        for start, stop in zip([0, *cuts], [*cuts, len(story)], strict=True):
            fold.add(story[start:stop])
        assert fold.add([]) == fold_details(BUILD, story)


class TestJsonLines:
    @given(st.dictionaries(st.text(), JSON, max_size=3), st.text(), st.integers(0, 9))
    def test_a_line_gives_back_its_event(self, data: dict[str, Any], task: str, attempt: int) -> None:
        event = Saga("r").note(7, "task.started", task=task, attempt=attempt)
        event = Event(**{name: getattr(event, name) for name in event.__slots__ if name != "data"}, data=data)
        assert from_line(json.loads(json.dumps(as_line(event)))) == event

    def test_its_fields_are_the_documented_ones(self) -> None:
        assert list(as_line(whole()[0])) == [
            *("v", "build", "kind", "at", "task", "attempt", "data", "first_run", "run", "sequence"),
        ]

    @pytest.mark.parametrize(
        "changes",
        [{"v": 2}, {"at": "1"}, {"sequence": 0}, {"data": []}, {"kind": None}, {"attempt": True}, {"run": 3}],
        ids=str,
    )
    def test_what_is_no_event_is_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(EventUnreadable):
            from_line({**as_line(whole()[0]), **changes})

    @given(JSON)
    def test_any_json_is_an_event_or_refused(self, raw: Any) -> None:
        with pytest.raises(EventUnreadable):
            from_line(raw)


class TestComparing:
    @given(
        st.dictionaries(KEYS, st.sampled_from(["x", "y"])),
        st.dictionaries(KEYS, st.sampled_from(["x", "y", ""])),
    )
    def test_every_row_is_explained_just_once(self, given_: dict[Any, str], stored: dict[Any, str]) -> None:
        found = compare(given_, stored)
        named = [*found.added, *found.mended, *found.kept, *found.dropped]
        assert len(named) + found.same == len(given_.keys() | stored.keys())
        after = {key: digest for key, digest in stored.items() if key in found.kept or given_.get(key) == digest}
        after |= {key: given_[key] for key in (*found.added, *found.mended)}
        assert all(after[key] == digest for key, digest in given_.items()), "the log says what the histories say"
        assert all(after[key] == digest for key, digest in stored.items() if digest and key not in given_)
        assert compare(given_, after).changes is False

    def test_nothing_to_compare_is_no_change(self) -> None:
        assert not compare({}, {}).changes


@given(st.sampled_from([whole(), reset()]), st.randoms(use_true_random=False))
def test_order_is_that_of_time_and_of_each_run(story: list[Event], random: Any) -> None:
    shuffled = [*story, *story]
    random.shuffle(shuffled)
    found = in_order(shuffled)
    assert [event.at for event in found] == sorted(event.at for event in story)
    for run in {event.run for event in story}:
        numbers = [event.sequence for event in found if event.run == run]
        assert numbers == sorted(set(numbers))
