"""What looks like a secret does not leave in a prompt."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.redaction import MASK, redact

SECRETS = [
    "AKIA" + "A" * 16,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a" * 30,
    "glpat-" + "x" * 20,
    "xoxb-" + "1" * 12,
    "sk-proj-" + "q" * 40,
    "AIza" + "z" * 35,
    "npm_" + "k" * 36,
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", 'key = "{}"', "token:{}\n", "({})"])
def test_a_token_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    assert redact(around.format(secret)) == around.format(MASK)


def test_a_private_key_keeps_its_frame_only() -> None:
    frame = "-----BEGIN RSA PRIVATE KEY-----{}-----END RSA PRIVATE KEY-----"
    assert redact(frame.format("\nMIIabc\n")) == frame.format(MASK)


def test_a_password_in_a_url_is_masked_and_the_rest_stays() -> None:
    assert redact("postgresql://bob:hunter2@db/x") == f"postgresql://bob:{MASK}@db/x"


@pytest.mark.parametrize("text", ["sk-learn", "x = a-b", "https://host:8080/p@th", "ghp_short", "AKIA", "task-sk-1"])
def test_ordinary_code_is_untouched(text: str) -> None:
    assert redact(text) == text


@given(st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_a_megabyte_of_near_misses_takes_no_time() -> None:
    started = time.process_time()
    redact("sk-" * 200_000 + "-----BEGIN " * 50_000)
    assert time.process_time() - started < 5  # a backtracking pattern needs minutes here
