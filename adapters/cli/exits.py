"""Exit codes, as scripts rely on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from domain import errors
from domain.trace.delivery.told import DeliveryDetails

DONE = 0
OWN_FAILURE = 1
USAGE = 2
REFUSED = 3
AUTHENTICATION = 4
BUILD_FAILED = 5
PARTIAL = 6
WAITING = 7
ESCALATED = 8
TIMEOUT = 124
INTERRUPTED = 130

MEANINGS: Mapping[int, str] = {
    DONE: "done",
    OWN_FAILURE: "Mendwork's own failure, or something is not well",
    USAGE: "usage",
    REFUSED: "refused or aborted",
    AUTHENTICATION: "Temporal refused the credentials",
    BUILD_FAILED: "build failed or release rolled back",
    PARTIAL: "partial or not delivered",
    WAITING: "waiting for an answer",
    ESCALATED: "escalated or unclear",
    TIMEOUT: "not ended within --timeout",
    INTERRUPTED: "detached",
}
"""Every code that a command ends with."""

_NO_CREDENTIALS = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_REFUSED_CREDENTIALS = re.compile(r"\b(?:code|status): '?(?:Unauthenticated|PermissionDenied)\b")
_BY_STATUS = {
    "succeeded": DONE,
    "planned": DONE,
    "stopped": DONE,
    "aborted": REFUSED,
    "partial": PARTIAL,
    "escalated": ESCALATED,
    "undelivered": PARTIAL,  # landed, and production untouched
    "rolled back": BUILD_FAILED,
    "unclear": ESCALATED,
}
_ALONE = {"promoted": DONE, "unclear": ESCALATED}
_BY_FAULT = {
    "InvalidInput": USAGE,
    "InvalidName": USAGE,
    "UnknownName": USAGE,
    "TooLarge": USAGE,
    "KeyMissing": USAGE,
    "PriceUnknown": USAGE,
    "RepositoryRefused": REFUSED,
    "BranchTaken": REFUSED,
    "IsolationMissing": REFUSED,
    "BaseIsRed": REFUSED,
    "TargetMissing": REFUSED,
    "OlderRelease": REFUSED,
    "AlreadyRunning": REFUSED,
    "Aborted": REFUSED,
    "Escalated": ESCALATED,
    "EventConflict": OWN_FAILURE,
    "EventUnreadable": OWN_FAILURE,
    "KeyConflict": OWN_FAILURE,
    "DigestMismatch": OWN_FAILURE,
    "BlobMissing": OWN_FAILURE,
    "PhaseMissing": OWN_FAILURE,
}


def delivery_code(told: DeliveryDetails) -> int:
    """The code for a delivery that was started by itself. A rollback that was asked for and is proven is a success."""
    if told.kind == "rollback" and told.status == "rolled back":
        return DONE
    if told.status == "undelivered" and told.refused:
        return REFUSED
    if told.status == "undelivered":
        return _BY_FAULT.get(told.fault, BUILD_FAILED)
    return _ALONE.get(told.status, BUILD_FAILED)


def code_of(error: errors.MendworkError) -> int:
    """The code for a command that could not do its work."""
    if any(_refuses_credentials(cause) for cause in _causes(error.__cause__)):
        return AUTHENTICATION
    return OWN_FAILURE if isinstance(error, errors.Transient) else exit_code("failed", type(error).__name__)


def exit_code(status: str, fault: str) -> int:
    """The code for a build that ended with ``status``, by the class name of the fault that ended it."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    known = hasattr(errors, fault)
    return _BY_FAULT.get(fault, BUILD_FAILED if known else OWN_FAILURE)


def _refuses_credentials(error: BaseException) -> bool:
    """Told by what gRPC calls it, in the words of the two ways in which Temporal's client says so."""
    status = getattr(getattr(error, "status", None), "name", "")
    return status in _NO_CREDENTIALS or bool(_REFUSED_CREDENTIALS.search(str(error)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
