"""Exit codes, as scripts rely on them."""

from __future__ import annotations

from domain import errors
from domain.trace.delivery.told import DeliveryDetails

DONE = 0
OWN_FAILURE = 1
USAGE = 2
REFUSED = 3
BUILD_FAILED = 5
PARTIAL = 6
WAITING = 7
ESCALATED = 8
INTERRUPTED = 130

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


def exit_code(status: str, fault: str) -> int:
    """The code for a build that ended with ``status``, by the class name of the fault that ended it."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    known = hasattr(errors, fault)
    return _BY_FAULT.get(fault, BUILD_FAILED if known else OWN_FAILURE)
