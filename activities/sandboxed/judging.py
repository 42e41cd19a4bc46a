"""Judging one run by itself, and what a checkout holds by what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from activities.sandboxed.bench import Ended
from domain.errors import DigestMismatch
from domain.gates.report import runner_of
from domain.gates.trimming import trim
from domain.gates.verdict import Verdict, read_report, verdict

REPORT_BYTES = 12_000
"""What a model is shown of a red run: enough for several failures, small beside the files."""


def judge(ended: Ended, *, test: tuple[str, ...], base_ran: int | None) -> tuple[Verdict, int, str]:
    """The verdict, how many tests ran (-1: cannot be counted) and what of the output matters when it is red."""
    runner, code, text = runner_of(test), ended.result.exit_code, ended.text
    report = read_report(runner, text, code)
    judged = verdict(report, base_ran=base_ran, ended=ended.result.ended, exit_code=code)
    shown = "" if judged.green else trim(text, runner, limit=REPORT_BYTES)
    return judged, -1 if report.ran is None else report.ran, shown


def read_back(folder: Path, written: Mapping[str, str]) -> None:
    """Compare what the checkout holds with what the writer said. Raises DigestMismatch with the first that differs.

    "Done" is computed here, in another process than the one that wrote: a deleted file has to be gone.
    """
    for path, digest in sorted(written.items()):
        file = folder / path
        present = file.is_file() and not file.is_symlink()
        found = hashlib.sha256(file.read_bytes()).hexdigest() if present else ""
        if found != digest:
            raise DigestMismatch(
                f"{path} reads back as {found[:12] or 'nothing'}, written was {digest[:12] or 'nothing'}"
            )
