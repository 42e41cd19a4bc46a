"""The benchmarks still run; what they measure is for `make bench`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks import environments, tasks


def test_a_task_is_played_by_ours_and_by_the_shell_in_the_same_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(tasks.main(tasks.SIZES[:1], 2, folder=tmp_path)) > 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["files", "who", *tasks.STEPS, "whole", "ratio"]
    assert [line.split()[:2] for line in shown[1:3]] == [["50", "shell"], ["50", "ours"]]
    assert len(shown[2].split()) == len(shown[0].split())
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_built_once_and_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(environments.main(1, plain=True))
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in shown] == ["built", "found again", "a run without it", "a run on top of it"]
    assert "it was there" not in shown[0]
