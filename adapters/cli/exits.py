"""Exit codes, as scripts rely on them."""

from __future__ import annotations

from domain import errors

DONE = 0
OWN_FAILURE = 1
USAGE = 2
REFUSED = 3
BUILD_FAILED = 5
INTERRUPTED = 130

_BY_FAULT = {
    "InvalidInput": USAGE,
    "InvalidName": USAGE,
    "UnknownName": USAGE,
    "TooLarge": USAGE,
    "RepositoryRefused": REFUSED,
    "BranchTaken": REFUSED,
    "IsolationMissing": REFUSED,
    "BaseIsRed": REFUSED,
    "AlreadyRunning": REFUSED,
    "EventConflict": OWN_FAILURE,
    "EventUnreadable": OWN_FAILURE,
    "KeyConflict": OWN_FAILURE,
    "DigestMismatch": OWN_FAILURE,
    "BlobMissing": OWN_FAILURE,
}


def exit_code(status: str, fault: str) -> int:
    """The code for a build that ended with ``status``, by the class name of the fault that ended it."""
    if status == "succeeded":
        return DONE
    if status == "aborted":
        return REFUSED
    known = hasattr(errors, fault)
    return _BY_FAULT.get(fault, BUILD_FAILED if known else OWN_FAILURE)
