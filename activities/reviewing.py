"""Reading a review that a model answered."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from temporalio import activity

from activities.documents import canonical, read_json, read_plan
from domain.build.plan import PlannedTask
from domain.ports.blobs import Blobs
from domain.review.diff import diff_parts, is_cut
from domain.review.findings import Finding, Review
from domain.review.weighing import Scope, Weighed, report_of, sentence_of, weigh


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReviewInput:
    """``review`` is the digest of the answered Review; ``tasks`` the ids that a finding may name, in the order in which
    they merged; ``plan`` and ``diff`` (as ``RenderedPrompt`` gives it) the digests of what was reviewed, "" where they
    are not known."""

    review: str
    tasks: tuple[str, ...]
    plan: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHigh:
    """The high findings of one task: ``report`` is the digest of what the task is told, ``sentence`` its first line."""

    task: str
    sentence: str
    report: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReview:
    """``findings`` is the digest of all of them: a JSON object with ``summary``, ``findings`` (the gravest first) and
    ``left_out`` (how many more there were). The counts are by severity. ``high`` is grouped by task: what names no task
    of the plan is given to the one that declares its file, else to the last one."""

    findings: str
    high: tuple[FoundHigh, ...]
    medium: int
    low: int


class Reviewing:
    """Reads and writes blobs only."""

    def __init__(self, *, blobs: Blobs) -> None:
        self._blobs = blobs

    @activity.defn
    async def check_review(self, request: CheckReviewInput) -> CheckedReview:
        """Group the findings by the task that has to mend them. What is about no file of the diff sends nobody back."""
        weighed = weigh(await self._review(request.review), await self._scope(request))
        return CheckedReview(
            findings=await self._blobs.put(canonical(asdict(weighed))),
            high=tuple([await self._high(weighed, task) for task in weighed.tasks_with_high()]),
            medium=weighed.count("medium"),
            low=weighed.count("low"),
        )

    async def _high(self, weighed: Weighed, task: str) -> FoundHigh:
        of_task = weighed.of(task)
        high = tuple(finding for finding in of_task if finding.severity == "high")
        report = await self._blobs.put(report_of(of_task).encode(errors="replace"))
        return FoundHigh(task=task, sentence=sentence_of(high), report=report, count=len(high))

    async def _review(self, digest: str) -> Review:
        """As ``AnswerSchemas`` decoded it."""
        raw = await read_json(self._blobs, digest)
        return Review(summary=raw["summary"], findings=tuple(Finding(**finding) for finding in raw["findings"]))

    async def _scope(self, request: CheckReviewInput) -> Scope:
        planned = (await read_plan(self._blobs, request.plan)).tasks if request.plan else ()
        diff = (await self._blobs.get(request.diff)).decode(errors="replace") if request.diff else ""
        known = bool(diff) and not is_cut(diff)
        return Scope(
            tasks=request.tasks,
            declared={task.id: _declared(task) for task in planned},
            touched=frozenset(part.path for part in diff_parts(diff)) if known else None,
        )


def _declared(task: PlannedTask) -> tuple[str, ...]:
    return (*task.files, *(test.split("::")[0] for test in task.tests))
