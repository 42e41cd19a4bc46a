"""What is kept, and for how long: releases that one can go back to, snapshots, builds, and whatever is still open."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.keeping.holders import (
    BUILD,
    DAY_MS,
    LAST_RELEASES,
    RELEASE,
    SKEW_MS,
    SNAPSHOT,
    Holder,
    idle_before,
    kept,
    oldest_open,
    settled_before,
)
from domain.keeping.references import checksum, digests_in, named_in
from domain.keeping.retention import Retention
from domain.keeping.sweeping import unneeded
from domain.ports.blobs import StoredBlob

NOW = 1_000 * DAY_MS
RETENTION = {"shop": Retention(builds=10, snapshots=5, environments=3)}
A, B, C = (sha256(text).hexdigest() for text in (b"a", b"b", b"c"))


def build(name: str = "build-shop-1", *, started: float, ended: float | None, project: str = "shop") -> Holder:
    """``started`` and ``ended`` are days ago."""
    over = 0 if ended is None else NOW - int(ended * DAY_MS)
    return Holder(name=name, kind=BUILD, project=project, started=NOW - int(started * DAY_MS), ended=over, owner=name)


def snapshot(age: float, name: str = "build-shop-1@1") -> Holder:
    at = NOW - int(age * DAY_MS)
    return Holder(name=name, kind=SNAPSHOT, project="shop", started=at, ended=at, owner=name.split("@")[0])


def release(number: int, *, status: str = "promoted", age: float = 500, previous: int = 0, owner: str = "") -> Holder:
    at = NOW - int(age * DAY_MS)
    return Holder(
        name=f"shop#{number}",
        kind=RELEASE,
        project="shop",
        started=at,
        ended=0 if status == "open" else at,
        number=number,
        status=status,
        previous=previous,
        owner=owner,
    )


def names(*holders: Holder) -> set[str]:
    return {holder.name for holder in kept(holders, now=NOW, retention=RETENTION)}


@pytest.mark.parametrize(("ended", "stays"), [(None, True), (9.9, True), (10.1, False)])
def test_a_build_is_kept_while_it_is_open_and_for_its_projects_retention(ended: float | None, stays: bool) -> None:
    assert (names(build(started=400, ended=ended)) != set()) is stays


def test_a_project_that_nobody_configures_any_more_keeps_as_by_default() -> None:
    assert names(build(started=80, ended=80, project="gone")) == {"build-shop-1"}
    assert names(build(started=95, ended=95, project="gone")) == set()


def test_a_snapshot_is_kept_a_day_longer_than_it_can_be_resumed() -> None:
    assert names(snapshot(5.9)) == {"build-shop-1@1"}
    assert names(snapshot(6.1)) == set()


def test_a_snapshot_outlives_a_build_with_a_shorter_retention() -> None:
    held = kept([build(started=3, ended=3), snapshot(3)], now=NOW, retention={"shop": Retention(builds=1, snapshots=5)})
    assert [holder.kind for holder in held] == [SNAPSHOT]


def test_the_last_ten_releases_are_kept_whatever_their_age() -> None:
    releases = [release(number, status="undelivered") for number in range(1, 15)]
    assert names(*releases) == {f"shop#{number}" for number in range(5, 15)}


def test_the_serving_release_and_the_one_before_it_are_kept_behind_any_number_of_failed_ones() -> None:
    failed = [release(number, status="rolled back") for number in range(4, 5 + LAST_RELEASES)]
    assert {"shop#3", "shop#1"} <= names(release(1), release(2), release(3, previous=1), *failed)
    assert "shop#2" not in names(release(1), release(2), release(3, previous=1), *failed)


def test_what_nobody_has_decided_about_is_kept_with_what_it_would_go_back_to() -> None:
    newer = [release(number, status="undelivered") for number in range(4, 5 + LAST_RELEASES)]
    assert {"shop#1", "shop#2"} <= names(release(1), release(2, status="unclear", previous=1), *newer)


def test_an_open_release_keeps_the_build_that_it_delivers() -> None:
    held = names(build(started=300, ended=300), release(1, status="open", owner="build-shop-1"))
    assert held == {"build-shop-1", "shop#1"}


def test_nothing_that_was_written_since_the_oldest_open_build_began_is_settled() -> None:
    open_for_long, young = build("b-1", started=40, ended=None), build("b-2", started=0.1, ended=None)
    assert settled_before([young], now=NOW) == NOW - DAY_MS, "a day at least"
    assert settled_before([young, open_for_long], now=NOW) == NOW - 40 * DAY_MS - SKEW_MS
    assert oldest_open([young, open_for_long]) == open_for_long
    assert oldest_open([build(started=3, ended=2)]) is None


def test_an_environment_that_an_open_build_may_have_used_is_not_idle() -> None:
    assert idle_before(3, now=NOW, began=0) == NOW - 3 * DAY_MS
    assert idle_before(3, now=NOW, began=NOW - 9 * DAY_MS) < NOW - 9 * DAY_MS
    assert idle_before(3, now=NOW, began=NOW - DAY_MS) == NOW - 3 * DAY_MS


def test_digests_are_found_with_the_key_under_which_they_lie() -> None:
    value = {"log": A, "tasks": [{"diff": B, "sentence": f"all that it printed: blob {C}"}], "commit": "a" * 40}
    assert named_in(value) == {A: "log", B: "diff", C: "sentence"}


def test_a_digest_behind_an_escaped_character_of_json_is_found() -> None:
    text = json.dumps("\x1b" + A)
    assert A in set(digests_in(text)), text


def test_a_digest_that_is_a_key_is_found() -> None:
    assert named_in({"seen": {A: 1}}) == {A: "seen"}


@given(st.lists(st.sampled_from([A, B, C, "no digest", "0" * 63, {"x": A}, 3, None])))
def test_every_digest_in_a_value_is_found_and_nothing_else(values: list[object]) -> None:
    expected = {each for each in values if each in (A, B, C)} | ({A} if {"x": A} in values else set())
    assert set(named_in({"list": values})) == expected


@given(st.dictionaries(st.sampled_from([A, B, C]), st.text(max_size=5), max_size=3))
def test_a_changed_reference_changes_the_checksum(found: dict[str, str]) -> None:
    assert checksum(found) == checksum(dict(reversed(found.items())))
    for digest in found:
        assert checksum({key: what for key, what in found.items() if key != digest}) != checksum(found)
        assert checksum(found | {digest: found[digest] + "!"}) != checksum(found)


@given(
    blobs=st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 100)),
    needed=st.sets(st.sampled_from([A, B, C])),
    before=st.integers(0, 100),
)
def test_what_goes_is_old_and_unneeded_and_all_of_that_goes(
    blobs: dict[str, int], needed: set[str], before: int
) -> None:
    stored = [StoredBlob(digest=digest, size=1, written=at) for digest, at in blobs.items()]
    gone = {blob.digest for blob in unneeded(stored, needed=needed, before=before)}
    assert gone == {digest for digest, at in blobs.items() if digest not in needed and at < before}
