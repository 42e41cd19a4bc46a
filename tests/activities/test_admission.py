"""Admitting a delivery: from the allowlist, with its commit pinned, and never older than what serves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.delivery.admission import (
    MOST_PATHS,
    Admission,
    AdmitDeliveryInput,
    AssessInput,
    PinCommitInput,
    touched,
)
from activities.intake import Engine
from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import open_git
from domain.delivery.project import Delivery
from domain.errors import InvalidInput, OlderRelease, TargetMissing, UnknownName


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A user's repository whose project has a target."""

    user: UserRepository
    admission: Admission

    async def pin(self, commit: str) -> str:
        return await self.admission.pin_commit(PinCommitInput(saga="deliver-shop-1", project="shop", commit=commit))

    async def assess(self, old: str, new: str) -> tuple[int, int, int, str]:
        assessed = await self.admission.assess_change(AssessInput(project="shop", old=old, new=new))
        return assessed.touched.files, assessed.touched.lines, assessed.touched.novel, assessed.base


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    user, git = UserRepository(tmp_path / "user"), open_git(tmp_path / "state")
    delivery = Delivery(target="local", run=("serve",), environment={"GREETING": "hi"})
    project = replace(user.project(), delivery=delivery)
    engine = Engine(
        projects={"shop": project, "plain": replace(project, name="plain", delivery=None)},
        reasoning=(),
        coding=(),
        heartbeat=5,
    )
    return Desk(
        user=user,
        admission=Admission(engine=engine, mirrors=git.mirrors, sources=git.sources, merges=git.merges),
    )


class TestAdmitting:
    async def test_gives_the_terms_without_the_environment_of_a_release(self, desk: Desk) -> None:
        admitted = await desk.admission.admit_delivery(AdmitDeliveryInput(project="shop"))
        assert (admitted.project, admitted.delivery.run) == ("shop", ("serve",))
        assert admitted.delivery.environment == {}

    async def test_refuses_what_is_not_on_the_allowlist_and_what_has_no_target(self, desk: Desk) -> None:
        with pytest.raises(UnknownName):
            await desk.admission.admit_delivery(AdmitDeliveryInput(project="other"))
        with pytest.raises(TargetMissing, match=r"\[projects\.plain\.delivery\]"):
            await desk.admission.admit_delivery(AdmitDeliveryInput(project="plain"))


class TestPinning:
    async def test_takes_a_branch_or_a_commit_of_the_users_repository(self, desk: Desk) -> None:
        first = desk.user.git("rev-parse", "HEAD")
        assert await desk.pin("main") == first
        assert await desk.pin(first[:10]) == first

    async def test_what_is_not_there_is_one_sentence(self, desk: Desk) -> None:
        with pytest.raises(InvalidInput, match="nowhere"):
            await desk.pin("nowhere")


class TestAssessing:
    async def test_counts_what_changed_since_production(self, desk: Desk) -> None:
        old = await desk.pin("main")
        new = desk.user.commit({"app.py": b"one\n2\nthree\n", "new.py": b"a\nb\n"})
        await desk.pin(new)
        assert await desk.assess(old, new) == (2, 4, 1, old)

    async def test_the_same_commit_again_changes_nothing(self, desk: Desk) -> None:
        old = await desk.pin("main")
        assert await desk.assess(old, old) == (0, 0, 0, old)

    async def test_an_older_commit_than_productions_is_refused(self, desk: Desk) -> None:
        old = await desk.pin("main")
        new = desk.user.commit({"app.py": b"1\n"})
        await desk.pin(new)
        with pytest.raises(OlderRelease, match="roll back"):
            await desk.assess(new, old)

    @pytest.mark.parametrize("old", ["", "0" * 40])
    async def test_without_anything_known_of_production_everything_is_new(self, desk: Desk, old: str) -> None:
        new = await desk.pin("main")
        assert await desk.assess(old, new) == (3, 0, 3, "")


@given(st.text(max_size=400))
def test_no_text_whatever_fails_to_be_counted(diff: str) -> None:
    counted = touched(diff)
    assert 0 <= counted.novel <= counted.files
    assert len(counted.paths) <= MOST_PATHS


def test_lines_that_look_like_heads_are_counted_as_lines() -> None:
    diff = "diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a comment\n+++ another\n same\n"
    assert touched(diff).lines == 2
