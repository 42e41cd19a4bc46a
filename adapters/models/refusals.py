"""What a provider's failure means: litellm's exceptions as our errors, with sentences that hold no key."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from adapters.models.endpoint import Endpoint
from domain.errors import CredentialsRefused, MendworkError, ProviderRefused, ProviderUnavailable, RateLimited
from domain.money.usage import FREE, Bill

MAX_SENTENCE = 290
MAX_WAIT_SECONDS = 120.0
_ABSURD_SECONDS = 7 * 24 * 3600.0

_SECRET = re.compile(r"(?i)\b(?:sk|pk|key|gsk|xai|AIza)[-_]?[\w*-]{12,}|\bbearer\s+\S+|([?&](?:api[-_]?)?key=)[^&\s]+")
_ESCAPE_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~])?")
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\b:?\s*-?\s*)+")
_NO_KEY = re.compile(r"(?i)\bmissing (?:credentials|\w{0,20} ?api[ _-]?key)|\bapi_key \S{0,20} ?\S{0,20} ?must be set")
_LOCKED_OUT = frozenset({401, 403})
_TRY_AGAIN = frozenset({408, 409, 425})
_MAY_GO_ON = frozenset({408, 504, 524})
_LOCAL = frozenset({"UnsupportedParamsError"})
_ADVICE_BY_CLASS = {
    "ContextWindowExceededError": "the prompt is too long for it; make the task smaller or name a larger model",
    "ContentPolicyViolationError": "its content filter refused the prompt; reword the spec or name another model",
    "UnsupportedParamsError": "it does not take one of our parameters; set structured = false for it",
}
_ADVICE_BY_STATUS = {
    402: "its account has no credit left",
    429: "its account has no credit left",
    404: "it does not know the model or the address; check model and base_url",
}


def as_error(failure: Exception, endpoint: Endpoint, *, now: datetime | None = None) -> MendworkError:
    """Classify ``failure``, by HTTP status first: 429, 5xx and broken connections may go away, the rest will not."""
    status = getattr(failure, "status_code", None)
    if _lacks_key(failure, endpoint):
        return CredentialsRefused(f"model {endpoint.name}: there is no key for it; set {endpoint.key_variable}")
    if status == 429 and not _is_out_of_credit(failure):
        return RateLimited(_sentence(failure, endpoint), retry_after=_wait(failure, now))
    if not isinstance(status, int) or status in _TRY_AGAIN or status >= 500:
        return ProviderUnavailable(_sentence(failure, endpoint), retry_after=_wait(failure, now))
    kind = CredentialsRefused if status in _LOCKED_OUT else ProviderRefused
    return kind(_sentence(failure, endpoint, advice=_advice(failure, status, endpoint)))


def bill_for(failure: Exception, endpoint: Endpoint) -> Bill | None:
    """FREE when the provider answered with an error, or was never reached; None when it may have worked and billed.

    Told by what lies under litellm's exception, which gives broken connections a made-up status. A timeout on the way
    (408, 504, 524) is no word of the one who reckons; a key that is not accepted is never billed.
    """
    status = getattr(failure, "status_code", None)
    kinds = {kind.__name__ for cause in _causes(failure) for kind in type(cause).__mro__}
    refused = "HTTPStatusError" in kinds and status not in _MAY_GO_ON
    never_sent = bool(kinds & {"ConnectError", "ConnectTimeout", *_LOCAL}) or _lacks_key(failure, endpoint)
    return FREE if refused or never_sent or status in _LOCKED_OUT else None


def retry_after(value: str, *, now: datetime) -> float | None:
    """The header's seconds or HTTP date as a wait of at most 120 s; None when it says nothing usable."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now)
    if not math.isfinite(seconds) or not 0 <= seconds <= _ABSURD_SECONDS:
        return None
    return min(seconds, MAX_WAIT_SECONDS)


def plain_line(text: str, endpoint: Endpoint) -> str:
    """The first line of what a provider said, without escape codes, keys and litellm's own prefixes."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    for secret in {endpoint.api_key, endpoint.api_key.strip()} - {""}:
        line = line.replace(secret, "[key]")
    line = _SECRET.sub(lambda match: (match[1] or "") + "[key]", line)
    return "".join(c for c in _PREFIX.sub("", _ESCAPE_CODE.sub("", line)[:1000]).strip() if c.isprintable())


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """The failure and what it came from, oldest last."""
    seen: set[int] = set()
    while failure is not None and id(failure) not in seen:
        seen.add(id(failure))
        yield failure
        failure = failure.__cause__ or failure.__context__


def _seconds_until(value: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return math.nan
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


def _wait(failure: Exception, now: datetime | None) -> float | None:
    headers = getattr(failure, "litellm_response_headers", None)
    if not isinstance(headers, Mapping):
        return None
    found = next((value for name, value in headers.items() if str(name).lower() == "retry-after"), None)
    return None if found is None else retry_after(str(found), now=now or datetime.now(UTC))


def _is_out_of_credit(failure: Exception) -> bool:
    """OpenAI answers 429 for that too, but no wait helps."""
    body = getattr(failure, "body", None)
    return isinstance(body, Mapping) and body.get("code") == "insufficient_quota"


def _lacks_key(failure: Exception, endpoint: Endpoint) -> bool:
    """A client that finds no key fails before it asks anybody; litellm calls that an internal server error."""
    return not endpoint.api_key and not endpoint.base_url and _NO_KEY.search(_message(failure)[:1000]) is not None


def _advice(failure: Exception, status: int, endpoint: Endpoint) -> str:
    if status in _LOCKED_OUT:
        return f"it refused the key; set {endpoint.key_variable}"
    return _ADVICE_BY_CLASS.get(type(failure).__name__) or _ADVICE_BY_STATUS.get(status, "")


def _sentence(failure: Exception, endpoint: Endpoint, *, advice: str = "") -> str:
    """A 401 and a 403 are not quoted: providers repeat the key in them."""
    quoted = "" if advice.startswith("it refused the key") else plain_line(_message(failure), endpoint)
    parts = [f"model {endpoint.name}: {type(failure).__name__}", advice, quoted]
    return ": ".join(part for part in parts if part)[:MAX_SENTENCE]


def _message(failure: Any) -> str:
    return str(getattr(failure, "message", "") or failure)
