"""A release's recorded histories never change, and the recorder keeps to that."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from tests.replay.record import replace_folder
from tests.replay.shelf import Released, Shelf, order, running_version
from tests.replay.writing import Writer, lines, slim


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """Two versions with two histories each."""
    for version in ("0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        for name in ("a", "b"):
            (tmp_path / version / f"{name}.json").write_text(f"{name} of {version}")
    return Shelf(root=tmp_path)


def recorded(tmp_path: Path) -> Path:
    """What a recording left."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "c.json").write_text("c")
    return folder


def test_versions_are_in_the_order_of_their_numbers(shelf: Shelf) -> None:
    (shelf.root / "draft").mkdir()
    assert shelf.versions() == ["0.9.0", "0.10.0"]


def test_the_running_version_is_one_that_can_be_ordered() -> None:
    assert order(running_version()) >= (0, 1, 0)


def test_a_version_that_is_no_release_yet_is_recorded_afresh(shelf: Shelf, tmp_path: Path) -> None:
    replace_folder(shelf, "0.10.0", recorded(tmp_path))
    assert [path.name for path in shelf.histories("0.10.0")] == ["c.json"]
    assert [path.name for path in shelf.histories("0.9.0")] == ["a.json", "b.json"]


def test_a_release_is_not_recorded_again(shelf: Shelf, tmp_path: Path) -> None:
    assert shelf.seal("0.9.0") == 2
    with pytest.raises(Released, match=r"0\.9\.0 is released.*raise the version"):
        replace_folder(shelf, "0.9.0", recorded(tmp_path))
    assert [path.name for path in shelf.histories("0.9.0")] == ["a.json", "b.json"]
    assert list(shelf.changes()) == []


def test_a_release_is_made_once_and_of_histories(shelf: Shelf) -> None:
    shelf.seal("0.9.0")
    with pytest.raises(Released):
        shelf.seal("0.9.0")
    with pytest.raises(Released, match="record them first"):
        shelf.seal("1.0.0")
    assert not shelf.is_released("0.10.0")


def test_whatever_changes_in_a_release_is_named(shelf: Shelf) -> None:
    shelf.seal("0.9.0")
    shelf.seal("0.10.0")
    (shelf.root / "0.9.0" / "a.json").write_text("another")
    (shelf.root / "0.9.0" / "b.json").unlink()
    (shelf.root / "0.10.0" / "new.json").write_text("x")
    assert list(shelf.changes()) == ["0.9.0/a.json was changed", "0.9.0/b.json is gone", "0.10.0/new.json was added"]


def test_what_is_no_release_may_change(shelf: Shelf) -> None:
    shelf.seal("0.9.0")
    (shelf.root / "0.10.0" / "a.json").write_text("another")
    assert list(shelf.changes()) == []


def test_the_digests_are_those_that_sha256sum_checks(shelf: Shelf) -> None:
    shelf.seal("0.9.0")
    digest = hashlib.sha256(b"a of 0.9.0").hexdigest()
    assert shelf.sums.read_text().splitlines()[0] == f"{digest}  0.9.0/a.json"
    checked = subprocess.run(["sha256sum", "-c", shelf.sums.name], cwd=shelf.root, capture_output=True, check=False)
    assert checked.returncode == 0


def event(kind: str, **attributes: object) -> dict[str, object]:
    name = kind.title().replace("_", "")
    return {
        "eventId": "1",
        "eventType": f"EVENT_TYPE_{kind}",
        f"{name[0].lower()}{name[1:]}EventAttributes": attributes,
    }


def history(*events: dict[str, object]) -> WorkflowHistory:
    return WorkflowHistory.from_json("w", json.dumps({"events": list(events)}))


SCHEDULED = event("ACTIVITY_TASK_SCHEDULED", activityType={"name": "call_model"})
OTHER = event("ACTIVITY_TASK_SCHEDULED", activityType={"name": "apply_change"})


def test_a_task_that_takes_the_same_steps_as_another_is_written_once(tmp_path: Path) -> None:
    write = Writer(tmp_path)
    write(history(SCHEDULED), "build-1-task-a")
    write(history(SCHEDULED), "build-1-task-b")
    write(history(OTHER), "build-1-task-c")
    write(history(SCHEDULED), "build-2")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["build-1-task-a", "build-1-task-c", "build-2"]


def test_a_file_has_one_event_a_line_and_nothing_of_the_machine(tmp_path: Path) -> None:
    Writer(tmp_path)(history({**SCHEDULED, "taskId": "7"}, event("TIMER_STARTED", timerId="1")), "build-1")
    text = (tmp_path / "build-1.json").read_text()
    assert len(text.splitlines()) == 4
    assert "taskId" not in text
    assert [each["eventType"] for each in json.loads(text)["events"]] == [
        "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED",
        "EVENT_TYPE_TIMER_STARTED",
    ]


def test_noise_is_left_out_at_any_depth() -> None:
    assert slim({"a": [{"identity": "x", "b": 1}], "requestId": "y"}) == {"a": [{"b": 1}]}
    assert json.loads("".join(lines([]))) == {"events": []}
