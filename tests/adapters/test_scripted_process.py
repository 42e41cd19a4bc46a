"""The scripted server as a program: started, stopped, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.models.scripted.bill import read_bill
from tests.adapters.test_scripted_server import faulty, files, post

ROOT = Path(__file__).parents[2]


@contextmanager
def program(*options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "adapters.models.scripted", *options],
        cwd=ROOT, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def base_url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return str(json.loads(process.stdout.readline())["base_url"])


def options(folder: Path, *entries: dict[str, Any]) -> list[str]:
    answers, bill = files(folder, *entries)
    return ["--answers", str(answers), "--bill", str(bill)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with program(*options(tmp_path, faulty())) as process:
        assert post(base_url(process)).status == 200
        process.send_signal(number)
        assert process.communicate(timeout=10) == ("", "")
        assert process.returncode == 0


def test_the_bill_survives_kill_9_and_no_fault_is_played_again(tmp_path: Path) -> None:
    started = options(tmp_path, faulty("server_error", "rate_limited"))
    statuses = []
    for _ in range(4):
        with program(*started) as process:
            statuses.append(post(base_url(process)).status)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)
    assert statuses == [500, 429, 200, 200]
    assert [line.fault for line in read_bill(tmp_path / "bill.jsonl")] == ["server_error", "rate_limited", "", ""]


def test_unusable_input_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    with program(*options(tmp_path, {"role": "Plan"})) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert (
        err == f"scripted: {tmp_path}/answers.yaml: entry 1: Value error, give exactly one of answer, text and file\n"
    )
    assert not (tmp_path / "bill.jsonl").exists()


def test_a_taken_port_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    with program(*options(tmp_path, faulty())) as first:
        port = base_url(first).removesuffix("/v1").rpartition(":")[2]
        with program(*options(tmp_path, faulty()), "--port", port) as second:
            _, err = second.communicate(timeout=20)
    assert second.returncode == 2
    assert err.startswith("scripted: ")
    assert err.count("\n") == 1


def test_the_required_key_comes_from_the_environment(tmp_path: Path) -> None:
    with program(*options(tmp_path, faulty()), "--require-key", "A_KEY", A_KEY="canary") as process:
        url = base_url(process)
        assert post(url).status == 401
        assert post(url, Authorization="Bearer canary").status == 200
    with program(*options(tmp_path, faulty()), "--require-key", "NO_SUCH_KEY") as process:
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (2, "scripted: --require-key names NO_SUCH_KEY, which is not set\n")
