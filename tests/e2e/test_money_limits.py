"""Money as a user sees it: hard limits that become questions, a warning before, a sum that is the provider's bill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace as altered
from typing import Any

import pytest

from domain.ports.language_model import CallKey
from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    built,
    change,
    checked,
    create,
    events,
    plan,
    serving,
    task,
    told,
    waiting,
)
from tests.e2e.workshop import Workshop

DEAR: dict[str, Any] = {"usage": {"input_tokens": 100, "output_tokens": 10_000}}
"""0.0401 USD; the bound of a call is about 0.07."""
ALONE = "approve = []\nreview = false\n"
BUILD_LIMIT = Scene(
    name="build-limit",
    consent=ALONE,
    more="[this.budget]\nbuild = 0.1\n",
    # What the first attempt wanted is over the limit and never asked; after the answer the second one asks.
    answers=[plan(task("one", "one.py"), **DEAR), change("one", 2, create("one.py", "A = 1\n"), **DEAR)],
)
TASK_LIMIT = altered(BUILD_LIMIT, name="single", more="[this.budget]\ntask = 0.01\n")
USER_LIMIT = altered(BUILD_LIMIT, name="user-limit", more="[this.budget]\nuser = 0.000001\n")
CALL_LIMIT = Scene(
    name="call-limit",
    consent=ALONE,
    more="[this.budget]\ncalls = 1\n",
    answers=[
        plan(task("one", "one.py")),
        change("one", 1, checked("one", "self.fail()")),
        change("one", 3, create("one.py", "A = 1\n")),
    ],
)
REVIEWED = Scene(
    name="reviewed",
    consent='approve = ["change"]\nreview = true\n',
    more="[this.budget]\nbuild = 0.205\n[this.limits]\noutput_tokens = 4_000\n",
    answers=[
        plan(task("one", "one.py")),
        change("one", 1, create("one.py", "A = 1\n"), usage={"input_tokens": 100, "output_tokens": 2_500}),
        {
            "role": "Review",
            "answer": {
                "summary": "it is fine",
                "findings": [
                    {"task": "one", "file": "one.py", "line": 1, "severity": "low", "message": "A says little"}
                ],
            },
            "usage": {"input_tokens": 100, "output_tokens": 3_900},
        },
    ],
)
REFUSED = Scene(
    name="refused",
    consent=ALONE,
    answers=[
        plan(task("one", "one.py")),
        change("one", 1, create("one.py", "A = 1\n"), faults=[{"kind": "refused"}]),
        change("one", 2, create("one.py", "A = 2\n")),
    ],
)
SCENES = (BUILD_LIMIT, TASK_LIMIT, USER_LIMIT, CALL_LIMIT, REVIEWED, REFUSED)
REVIEWER = """
[models.critic]
model = "openai/critic"
base_url = "{base_url}"
api_key_env = "SCRIPTED_API_KEY"
input_price = 2.0
output_price = 40.0

[roles]
reasoning = ["coder"]
coding = ["coder"]
validation = ["critic"]
"""
PRICES = {"scripted": (1, 4), "critic": (2, 40)}  # micro-dollars a token


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("money"), SCENES, extra=REVIEWER) as at:
        yield at


@pytest.fixture(scope="module")
def builds(at: Workshop) -> dict[str, str]:
    return {scene.name: begun(at, scene) for scene in SCENES if scene is not USER_LIMIT}


def bill(at: Workshop, build: str) -> int:
    """What the provider wants for a build, in micro-dollars."""
    lines = [line for line in at.billed() if line["key"].startswith((f"{build}/", f"{build}-task-"))]
    prices = [(line, PRICES[line["model"].removeprefix("openai/")]) for line in lines]
    return sum(line["input_tokens"] * each[0] + line["output_tokens"] * each[1] for line, each in prices)


def packet(at: Workshop, ask: dict[str, Any]) -> dict[str, Any]:
    """What a person who is asked is shown."""
    found: dict[str, Any] = json.loads((at.state / "blobs" / ask["digest"][:2] / ask["digest"][2:]).read_text())
    return found


@pytest.mark.parametrize(
    ("scene", "account", "option"),
    [(BUILD_LIMIT, "build", "--build-budget"), (TASK_LIMIT, "task", "--task-budget")],
    ids=["build", "task"],
)
def test_a_limit_is_a_question_that_names_it_and_raising_it_lets_the_task_go_on(
    at: Workshop, builds: dict[str, str], scene: Scene, account: str, option: str
) -> None:
    build = builds[scene.name]
    question = waiting(at, build, "task")
    assert f"the budget of {account}" in question["sentence"]
    assert f"raise the {account} budget" in question["sentence"]
    asked = len([line for line in at.billed() if line["key"].startswith(build)])
    assert asked == 1  # the plan: what is over the limit is not even asked
    assert at.mendwork("answer", build, "raise").code == 2
    assert answered(at, "answer", build, "raise", option, "1")["outcome"] == "accepted"
    assert at.mendwork("watch", build).code == 0
    status = at.status(build)
    assert bill(at, build) <= status["cost_micros"] <= bill(at, build) + 2


def test_a_limit_of_calls_is_a_question_too(at: Workshop, builds: dict[str, str]) -> None:
    build = builds["call-limit"]
    question = waiting(at, build, "task")
    assert "1 calls of 1" in question["sentence"]
    assert answered(at, "raise", build, "--calls", "5")["outcome"] == "accepted"
    assert answered(at, "answer", build, "retry")["outcome"] == "accepted"
    assert at.mendwork("watch", build).code == 0


def test_a_call_that_the_provider_refuses_costs_nothing_and_its_fault_is_in_the_question(
    at: Workshop, builds: dict[str, str]
) -> None:
    build = builds["refused"]
    shown = packet(at, waiting(at, build, "task"))
    (tried,) = shown["tried"]
    assert shown["kind"] == "ModelsExhausted"
    (failed,) = told(at, build, "call.failed")
    (fault,) = failed["faults"]
    assert (failed["model"], fault["kind"]) == ("coder", "CredentialsRefused")
    assert "SCRIPTED_API_KEY" in fault["sentence"]
    assert fault["sentence"] in tried["outcome"]
    assert shown["spent"]["settled"] == 0, "of this task"
    assert answered(at, "answer", build, "retry")["outcome"] == "accepted"
    assert at.mendwork("watch", build).code == 0


def test_what_was_pinned_of_a_models_sampling_is_in_the_row_of_its_answer(at: Workshop, builds: dict[str, str]) -> None:
    waiting(at, builds["reviewed"])
    answers = [event for event in events(at, builds["reviewed"]) if event.kind == "call.answered"]
    assert [event.data["role"] for event in answers] == ["reasoning", "coding", "validation"]
    for event in answers:
        saga = f"{event.build}-task-{event.task}" if event.task else event.build
        key = CallKey(saga=saga, step=event.data["step"], attempt=event.attempt, turn=event.data["turn"])
        assert str(key) in {line["key"] for line in at.billed()}
        assert event.data["pinned"] == {"temperature": 0, "seed": key.seed}


def test_a_build_that_cannot_even_plan_fails_before_anything_is_asked(at: Workshop) -> None:
    ran = built(at, [USER_LIMIT], "--user", "poor")["user-limit"]
    assert ran.code == 5, ran.err
    assert "poor" in ran.err.splitlines()[-1]
    build = ran.err.split()[0]
    assert [line for line in at.billed() if line["key"].startswith(build)] == []


class TestAReviewedBuild:
    def test_is_reviewed_by_another_model_at_its_own_price(self, at: Workshop, builds: dict[str, str]) -> None:
        build = builds["reviewed"]
        ask = waiting(at, build)
        review = told(at, build, "review.ended")[0]
        assert (review["model"], review["weak"], review["low"], review["high"]) == ("critic", False, 1, 0)
        assert "critic" in {line["model"] for line in at.billed()}
        assert packet(at, ask)["spent"]["settled"] >= bill(at, build)

    def test_warns_when_four_fifths_of_a_limit_are_used(self, at: Workshop, builds: dict[str, str]) -> None:
        """0.01 for the change and 0.156 for the review, of 0.205."""
        waiting(at, builds["reviewed"])
        warned = [data["sentence"] for data in told(at, builds["reviewed"], "money.warned")]
        assert len(warned) == 1
        assert builds["reviewed"] in warned[0]

    def test_costs_what_the_provider_bills_to_the_micro_dollar_a_call(
        self, at: Workshop, builds: dict[str, str]
    ) -> None:
        build = builds["reviewed"]
        ask = waiting(at, build)
        ran = at.mendwork("cost", build, "--by", "model", "--json")
        assert ran.code == 0, ran.err
        cost = json.loads(ran.out)
        calls = cost["total"]["calls"]
        assert calls == len([line for line in at.billed() if line["key"].startswith(build)]) == 3
        assert bill(at, build) <= cost["total"]["settled_micros"] <= bill(at, build) + calls
        assert {line["name"] for line in cost["lines"]} == {"coder", "critic"}
        assert cost["total"]["unknown_micros"] == cost["total"]["held_micros"] == 0
        assert answered(at, "approve", build, ask["digest"])["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 0
