"""Retry-After and the sentences about failures, as pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.models.endpoint import Endpoint
from adapters.models.refusals import MAX_WAIT_SECONDS, as_error, plain_line, retry_after
from domain.errors import (
    CredentialsRefused,
    MendworkError,
    ProviderRefused,
    ProviderUnavailable,
    RateLimited,
    Transient,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ENDPOINT = Endpoint(name="m", model="openai/x", api_key="canary-key")


class Failure(Exception):
    """As litellm's exceptions look."""

    def __init__(self, status: object = None, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        self.status_code = status
        self.__dict__.update(attributes)


MISSING = "Missing credentials. Please pass an `api_key`, or set the `OPENAI_API_KEY` environment variable."


def test_a_missing_key_is_no_passing_fault_and_names_the_variable() -> None:
    error = as_error(Failure(500, MISSING), Endpoint(name="m", model="openai/x"))
    assert type(error) is CredentialsRefused
    assert str(error) == "model m: there is no key for it; set OPENAI_API_KEY"


@pytest.mark.parametrize("endpoint", [ENDPOINT, Endpoint(name="m", model="openai/x", base_url="http://127.0.0.1:1")])
def test_a_server_that_complains_of_keys_while_one_was_sent_may_recover(endpoint: Endpoint) -> None:
    assert isinstance(as_error(Failure(500, MISSING), endpoint), ProviderUnavailable)


@given(st.text())
def test_any_header_gives_a_bounded_wait_or_none(value: str) -> None:
    wait = retry_after(value, now=NOW)
    assert wait is None or 0 <= wait <= MAX_WAIT_SECONDS


@given(st.floats(min_value=0, max_value=MAX_WAIT_SECONDS))
def test_seconds_are_taken_as_they_are(seconds: float) -> None:
    assert retry_after(str(seconds), now=NOW) == seconds


@given(st.integers(min_value=0, max_value=120), st.integers(min_value=-12, max_value=12))
def test_an_http_date_is_the_time_until_then_in_any_zone(seconds: int, hours: int) -> None:
    moment = (NOW + timedelta(seconds=seconds)).astimezone(tz=timezone(timedelta(hours=hours)))
    assert retry_after(format_datetime(moment), now=NOW) == seconds


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", 0),
        (" 3 ", 3),
        ("121", 120),
        ("86400", 120),
        ("Fri, 20 Nov 2026 12:00:09 GMT", 9),
        ("Fri, 20 Nov 2026 12:00:09", 9),
        ("Fri, 20 Nov 2026 23:00:00 GMT", 120),
        ("Fri, 20 Nov 2026 11:59:59 GMT", None),
        ("Fri, 20 Nov 9999 11:59:59 GMT", None),
        ("Fri, 99 Nov 2026 12:00:09 GMT", None),
        ("-1", None),
        ("1e12", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
    ],
)
def test_what_a_header_means(value: str, wait: float | None) -> None:
    assert retry_after(value, now=NOW) == wait


@pytest.mark.parametrize("headers", [{"Retry-After": "9"}, {"retry-after": 9}])
@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (503, ProviderUnavailable)])
def test_the_wait_is_found_in_any_spelling(headers: dict[str, Any], status: int, kind: type) -> None:
    error = as_error(Failure(status, litellm_response_headers=headers), ENDPOINT, now=NOW)
    assert type(error) is kind
    assert isinstance(error, Transient)
    assert error.retry_after == 9


@pytest.mark.parametrize("headers", [None, {}, [], "retry-after: 3", {"retry-after": "x"}])
def test_without_a_usable_header_there_is_no_wait(headers: Any) -> None:
    error = as_error(Failure(429, litellm_response_headers=headers), ENDPOINT, now=NOW)
    assert isinstance(error, RateLimited)
    assert error.retry_after is None


@pytest.mark.parametrize("status", [None, "429", 408, 500, 599])
def test_what_nobody_knows_may_be_tried_again(status: object) -> None:
    assert type(as_error(Failure(status), ENDPOINT)) is ProviderUnavailable


@given(st.integers(400, 599), st.text(max_size=3000))
def test_every_sentence_is_one_short_line_without_the_key(status: int, message: str) -> None:
    error = as_error(Failure(status, f"{message} canary-key {message}"), ENDPOINT)
    assert isinstance(error, RateLimited | CredentialsRefused | ProviderRefused | ProviderUnavailable)
    assert isinstance(error, MendworkError)
    assert (type(error) is CredentialsRefused) == (status in (401, 403)), "who holds the keys can act, and nobody else"
    assert len(str(error)) < 300
    assert str(error).isprintable()
    assert "canary" not in str(error)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - Slow down.", "Slow down."),
        ("ContextWindowExceededError: litellm.BadRequestError: OpenAIException - Too long", "Too long"),
        ("\n \n first\nsecond", "first"),
        ("\x1b[1;31mred\x1b[0m and \x07 bell", "red and  bell"),
        ("Incorrect API key provided: sk-proj-abcd************wxyz.", "Incorrect API key provided: [key]."),
        ("POST https://host/v1?key=AIzaSyA-1234567890&x=1 failed", "POST https://host/v1?key=[key]&x=1 failed"),
        ("header 'Authorization: Bearer abc.def'", "header 'Authorization: [key]"),
        ("", ""),
    ],
)
def test_what_is_told_of_a_providers_message(said: str, told: str) -> None:
    assert plain_line(said, Endpoint(name="m", model="openai/x")) == told


def test_a_line_of_a_megabyte_takes_no_time() -> None:
    for line in ("Error" * 250_000, "sk-" + "*" * 1_000_000, "?key=" * 250_000, "\x1b[" + "0" * 1_000_000):
        assert len(plain_line(line, ENDPOINT)) <= 1000
