"""A model's review, read from its blob: who has to mend what, and what a person sees of it."""

from __future__ import annotations

import json
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.documents import canonical
from activities.reviewing import CheckedReview, CheckReviewInput, Reviewing
from adapters.blobs.memory import MemoryBlobs
from adapters.schemas import open_schemas

PLANNED = {"store": ("store.py", ""), "api": ("api.py", "t/test_api.py::T"), "docs": ("docs.md", "")}
PLAN = {
    "summary": "s",
    "tasks": [
        {"id": task, "title": "T", "instructions": "i", "files": [file], "tests": [test] * bool(test), "depends_on": []}
        for task, (file, test) in PLANNED.items()
    ],
}
DIFF = "".join(
    f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    for path in ("store.py", "api.py", "t/test_api.py", "docs.md", "new.py")
)
CUT = DIFF + "[the diff is cut here: it is over 2000000 bytes]\n"


def found(
    task: str, file: str, severity: str = "high", message: str = "It overflows.", line: int = 3
) -> dict[str, Any]:
    return {"task": task, "file": file, "line": line, "severity": severity, "message": message}


class Table:
    """The activity, and a reviewer that answers text which goes through the real schema."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()

    async def check(self, *findings: dict[str, Any], diff: str = DIFF, plan: bool = True) -> CheckedReview:
        answer = json.dumps({"summary": "Mostly fine.", "findings": findings})
        decoded = open_schemas().decode("Review", answer)
        assert decoded.value is not None, decoded.problems
        request = CheckReviewInput(
            review=await self.blobs.put(decoded.value.encode()),
            tasks=("store", "api", "docs"),
            plan=await self.blobs.put(canonical(PLAN)) if plan else "",
            diff=await self.blobs.put(diff.encode()) if diff else "",
        )
        checked = await ActivityEnvironment().run(Reviewing(blobs=self.blobs).check_review, request)
        assert isinstance(checked, CheckedReview)
        return checked

    async def text(self, digest: str) -> str:
        return (await self.blobs.get(digest)).decode()


async def test_high_findings_are_grouped_by_the_task_that_has_to_mend_them() -> None:
    table = Table()
    checked = await table.check(
        found("store", "store.py", message="First."),
        found("api", "api.py", "medium", message="Rare."),
        found("nobody", "t/test_api.py", message="Second."),
        found("store", "store.py", message="Third.", line=0),
        found("docs", "docs.md", "low"),
    )
    assert [high.task for high in checked.high] == ["store", "api"]
    assert (checked.medium, checked.low) == (1, 1)
    store, api = checked.high
    assert (store.count, api.count) == (2, 1)
    assert store.sentence == "store.py, line 3: First. (and 1 more)"
    assert "- store.py, line 3: First.\n- store.py: Third.\n" in await table.text(store.report)
    assert "Noticed too:\n- (medium) api.py, line 3: Rare." in await table.text(api.report)
    assert "First." not in await table.text(api.report)


async def test_all_findings_lie_in_one_blob_the_gravest_first() -> None:
    table = Table()
    checked = await table.check(found("api", "api.py", "low"), found("store", "store.py"))
    document = json.loads(await table.text(checked.findings))
    assert document["summary"] == "Mostly fine."
    assert [finding["severity"] for finding in document["findings"]] == ["high", "low"]
    assert document["findings"][0] == found("store", "store.py")
    assert document["left_out"] == 0


async def test_a_good_change_sends_nobody_back() -> None:
    checked = await Table().check()
    assert (checked.high, checked.medium, checked.low) == ((), 0, 0)


async def test_the_same_review_gives_the_same_digests() -> None:
    table = Table()
    assert await table.check(found("api", "api.py")) == await table.check(found("api", "api.py"))


async def test_an_undeclared_file_belongs_to_the_last_task() -> None:
    checked = await Table().check(found("", "new.py"))
    assert [high.task for high in checked.high] == ["docs"]


async def test_what_is_about_a_file_outside_the_diff_is_low() -> None:
    checked = await Table().check(found("api", "elsewhere.py"))
    assert (checked.high, checked.low) == ((), 1)


async def test_a_diff_that_was_cut_proves_nothing_about_a_file() -> None:
    assert [high.task for high in (await Table().check(found("api", "elsewhere.py"), diff=CUT)).high] == ["api"]


async def test_without_plan_and_diff_a_finding_goes_to_its_task_or_the_last() -> None:
    checked = await Table().check(found("api", "api.py"), found("", "store.py"), diff="", plan=False)
    assert [high.task for high in checked.high] == ["api", "docs"]


async def test_a_reviewer_cannot_reach_a_terminal_or_flood_a_history() -> None:
    hostile = [found("store", "store.py", message=f"{n}\x1b]0;x\x07\u202e" + "é" * 2_000) for n in range(300)]
    table = Table()
    checked = await table.check(*hostile, found("api\x1b[2J", "api.py\n" * 500, message="x\ny"))
    assert len(canonical([high.sentence for high in checked.high])) < 2_000
    for text in (await table.text(checked.findings), *[await table.text(high.report) for high in checked.high]):
        assert text.replace("\n", "").isprintable()
        assert len(text) < 30_000
    assert json.loads(await table.text(checked.findings))["left_out"] == 251
