"""What each test did, kept as a blob between the runs that are compared."""

from __future__ import annotations

from dataclasses import dataclass

from activities.documents import canonical, read_json
from activities.sandboxed.bench import Ended
from domain.build.project import Project
from domain.errors import InvalidInput
from domain.gates.comparing import Baseline, baseline_of, carried, document
from domain.gates.judging import Judged, judge_change, next_failures
from domain.gates.reading import Run, read_run
from domain.gates.trimming import trim
from domain.ports.blobs import Blobs

NO_TESTS = "there are no tests; what was written parses where that can be checked"
NO_COMMAND = "the project names no test command, and nothing (project.untested) says what counts without one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A run beside the baseline: ``shown`` is what of its output matters when it is red, ``next`` the baseline of the
    next change (None for a red one)."""

    judged: Judged
    run: Run
    shown: str
    next: Baseline | None


async def read_baseline(blobs: Blobs, digest: str) -> Baseline:
    """Raises InvalidInput for a blob that is no baseline."""
    raw = await read_json(blobs, digest)
    try:
        return baseline_of(raw)
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"the blob {digest[:12]} is no baseline of tests") from error


async def keep_baseline(blobs: Blobs, baseline: Baseline | None) -> str:
    """Its digest, "" for none."""
    return await blobs.put(canonical(document(baseline))) if baseline else ""


def read_ended(ended: Ended, project: Project, *, before: Baseline | None = None) -> Run:
    """The run as its output tells it, by the reader that read the one before."""
    known = before.runner if before and before.runner != "other" else None
    result = ended.result
    return read_run(project.test, ended.text, ended=result.ended, exit_code=result.exit_code, runner=known)


def judge_beside(ended: Ended, project: Project, before: Baseline, *, limit: int) -> Beside:
    """Judge a run by what it changes. ``limit`` is the most of its output that is shown, in bytes."""
    run = read_ended(ended, project, before=before)
    judged = judge_change(run, before, untested=bool(project.untested))
    if judged.verdict.green:
        runner = before.runner if before.tests else run.report.runner
        return Beside(judged=judged, run=run, shown="", next=carried(before, run.tests or {}, runner=runner))
    head = next_failures(judged.compared).encode()[: limit // 2].decode(errors="ignore")
    rest = limit - len(head.encode()) - 2
    text = trim(ended.text, run.report.runner, limit=rest, first=judged.compared.new)
    return Beside(judged=judged, run=run, shown=f"{head}\n\n{text}" if head else text, next=None)
