"""What providers do wrong, and that a build gets over it: through litellm over HTTP, as in production."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.workshop import MUL, PLAN, SQUARE, Workshop, git

BROKEN = """
[models.broken]
model = "openai/broken"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "SCRIPTED_API_KEY"
input_price = 1.0
output_price = 4.0

[roles]
reasoning = ["broken", "coder"]
coding = ["coder"]
"""


def faulty(plan: list[dict[str, Any]], mul: list[dict[str, Any]], square: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The right answers, each after the faults of its call."""
    return [
        {"role": "Plan", "answer": PLAN, "faults": plan},
        {"role": "Change", "task": "mul", "answer": MUL, "faults": mul},
        {"role": "Change", "task": "square", "answer": SQUARE, "faults": square},
    ]


def faults_of(shown: dict[str, Any]) -> Counter[str]:
    """How often each kind of fault is in ``mendwork show --json``."""
    listed = list(shown["faults"])
    for task in shown["tasks"].values():
        for attempt in task["attempts"]:
            listed += attempt["faults"]
    return Counter(fault["kind"] for fault in listed)


def test_a_build_gets_over_every_passing_fault_and_shows_all_of_them(tmp_path: Path) -> None:
    answers = faulty(
        [{"kind": "rate_limited", "retry_after": 1}, {"kind": "server_error"}],
        [{"kind": "cut"}, {"kind": "malformed_json"}],
        [{"kind": "empty"}, {"kind": "wrong_schema"}, {"kind": "prose", "turn": 2}],
    )
    at = Workshop(tmp_path / "w", answers=answers)
    with at.running():
        ran = at.mendwork("build", "spec.md")
        shown = json.loads(at.mendwork("show", ran.out.strip(), "--json").out)
    assert ran.code == 0, ran.err
    assert faults_of(shown) == {"RateLimited": 1, "ProviderUnavailable": 3, "UnusableAnswer": 2}
    assert "after RateLimited" in ran.err
    assert git(at.repository, "log", "--format=%s", "mendwork/build-calc-1").splitlines()[0] == "Add square"
    played = [line["fault"] for line in at.billed() if line["fault"] not in ("", "prose")]
    assert sorted(played) == ["cut", "empty", "malformed_json", "rate_limited", "server_error", "wrong_schema"]


def test_an_answer_of_five_megabytes_or_cut_in_the_middle_is_never_executed_in_part(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=faulty([], [{"kind": "cut_json"}], [{"kind": "huge"}]))
    with at.running():
        ran = at.mendwork("build", "spec.md")
        shown = json.loads(at.mendwork("show", ran.out.strip(), "--json").out)
    assert ran.code == 0, ran.err
    assert faults_of(shown)["UnusableAnswer"] >= 1
    assert "+def mul" in at.mendwork("show", ran.out.strip(), "--diff").out


def test_when_a_models_tries_are_used_up_the_next_of_the_chain_answers(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=faulty([], [], []))
    with at.running(extra=BROKEN):
        ran = at.mendwork("build", "spec.md")
        shown = json.loads(at.mendwork("show", ran.out.strip(), "--json").out)
    assert ran.code == 0, ran.err
    assert faults_of(shown) == {"ProviderUnavailable": 3}
    assert "broken failed, after ProviderUnavailable" in ran.err


def test_a_wrong_key_ends_the_build_with_what_a_person_can_do(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=faulty([{"kind": "refused"}], [], []))
    with at.running():
        ran = at.mendwork("build", "spec.md")
    assert ran.code == 4
    assert "SCRIPTED_API_KEY" in ran.err.splitlines()[-1]
    assert "canary" not in ran.err
    assert len(at.billed()) == 1
    assert git(at.repository, "for-each-ref", "refs/heads/mendwork") == ""


def test_a_missing_key_ends_the_build_at_once_and_names_the_variable(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w")
    keyless = '\n[models.keyless]\nmodel = "openai/gpt-5"\n\n[roles]\nreasoning = ["keyless"]\n'
    with at.running(extra=keyless):
        ran = at.mendwork("build", "spec.md")
        status = at.status("build-calc-1")
    assert (ran.code, status["calls"]) == (4, 1)
    assert "there is no key for it; set OPENAI_API_KEY" in ran.err.splitlines()[-1]
