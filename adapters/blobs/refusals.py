"""What goes wrong with a bucket, as errors of ours: by who can act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from adapters.blobs.bucket import KEYS, Bucket
from domain.errors import (
    CredentialsRefused,
    Defect,
    InvalidInput,
    MendworkError,
    ResourceShort,
    StoreUnavailable,
    TooLarge,
)

AWAY_SECONDS = 5.0
"""Who cannot be reached is starting again, at best: the few tries of a step must not be over before it serves."""
MISSING = frozenset({"NoSuchKey", "404"})
"""The object is not there; the answer to a HEAD has no body, and so no better word than its status."""
_TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "409", "412"})
_LATER = frozenset(
    {
        *("RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "OperationAborted"),
        *("BadDigest", "IncompleteBody", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"),
    }
)
"""The same request may work in a moment; of those below 500."""
_FULL = frozenset({"InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "507"})
_ELSEWHERE = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect", "301", "307"}
)


def code_of(error: Any) -> str:
    """S3's own word for what it refused, or the status of an answer without one."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_taken(error: Exception) -> bool:
    """Whether something is there already, or another request is just putting it there."""
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]

    return isinstance(error, ClientError) and code_of(error) in _TAKEN


def is_hung_up(error: Exception) -> bool:
    """Whether a connection ended without an answer."""
    from botocore.exceptions import ConnectionClosedError

    return isinstance(error, ConnectionClosedError)


@contextmanager
def translated(what: str, bucket: Bucket) -> Iterator[None]:
    """Raise an error of ours instead of the client's; ``what`` begins the sentence.

    The original is not chained, and its text not told: it may hold the key's id.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _answered(f"{what}: {bucket.shown}", error) from None
    except BotoCoreError as error:
        raise _unanswered(f"{what}: {bucket.shown}", error) from None
    except OSError as error:  # the body of an answer broke off
        raise StoreUnavailable(f"{what}: {bucket.shown} broke off ({type(error).__name__})") from None


def _answered(what: str, error: Any) -> MendworkError:
    code, told = code_of(error), error.response.get("ResponseMetadata", {})
    status = int(told.get("HTTPStatusCode", 0))
    if code == "NoSuchBucket":
        return InvalidInput(f"{what}: there is no such bucket, see blobs.url")
    if code in _ELSEWHERE:
        return InvalidInput(f"{what} is not in this region, see blobs.region ({code})")
    if code in _FULL or status == 507:
        return ResourceShort(f"{what} has no room ({code})")
    if code == "EntityTooLarge":
        return TooLarge(f"{what} takes none that is so large")
    if code == "NotImplemented" or status == 501:
        return InvalidInput(f"{what} cannot do what is needed of it: conditional writes ({code})")
    if code in _LATER or status in (408, 429) or status >= 500:
        return StoreUnavailable(f"{what} cannot serve now ({code or status})", retry_after=_wait(told))
    if status in (401, 403):
        return CredentialsRefused(f"{what} refuses the key of {KEYS[0]} ({code})")
    return InvalidInput(f"{what} refuses it, see blobs.url and blobs.endpoint ({code or status})")


def _unanswered(what: str, error: Any) -> MendworkError:
    from botocore import exceptions  # type: ignore[import-untyped]

    if isinstance(error, exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return InvalidInput(f"{what}: its certificate is of an authority that this machine does not trust")
    if isinstance(error, exceptions.ReadTimeoutError):
        return StoreUnavailable(f"{what} went silent")
    if isinstance(error, (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError)):
        return StoreUnavailable(f"{what} cannot be reached", retry_after=AWAY_SECONDS)
    broken = (exceptions.HTTPClientError, exceptions.IncompleteReadError, exceptions.ResponseStreamingError)
    if isinstance(error, broken) or "Parser" in type(error).__name__:
        return StoreUnavailable(f"{what} broke off ({type(error).__name__})")
    return Defect(f"{what} was asked wrongly ({type(error).__name__})")


def _wait(told: Mapping[str, Any]) -> float | None:
    """Seconds, where the answer names them."""
    named = str(told.get("HTTPHeaders", {}).get("retry-after", ""))
    return float(named) if named.isdecimal() else None
