"""Exit codes, as scripts rely on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from domain import errors
from domain.trace.delivery.told import DeliveryDetails

if TYPE_CHECKING:
    from domain.trace.parts import BuildDetails

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
    AUTHENTICATION: "credentials refused by Temporal, the store or a provider",
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
_NO_MODEL = errors.ModelsExhausted.__name__
_STUCK = ("stuck", "skipped")
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
    "CredentialsRefused": AUTHENTICATION,
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


def ended_code(details: BuildDetails) -> int:
    """The code for a build, or a delivery on its own, that ended. Where no model of a chain gave an answer, what the
    last one said decides: a key that it refused is for whoever holds the keys to mend."""
    if details.alone:
        return delivery_code(details.delivery)
    locked_out = details.fault == _NO_MODEL and _last_kind(details) == errors.CredentialsRefused.__name__
    return exit_code(details.status, errors.CredentialsRefused.__name__ if locked_out else details.fault)


def exit_code(status: str, fault: str) -> int:
    """The code for a build that ended with ``status``, by the class name of the fault that ended it."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    known = hasattr(errors, fault)
    return _BY_FAULT.get(fault, BUILD_FAILED if known else OWN_FAILURE)


def _last_kind(details: BuildDetails) -> str:
    """The class name of the fault that ended it: among the tasks of the first that was stuck, else of its own calls."""
    tasks = details.tasks.values() if details.phase == "tasks" else ()
    stuck = next((task for task in tasks if task.status in _STUCK), None)
    faults = [fault for attempt in stuck.attempts for fault in attempt.faults] if stuck else details.faults
    return str(faults[-1].get("kind", "")) if faults else ""


def _refuses_credentials(error: BaseException) -> bool:
    """Told by what gRPC calls it, in the words of the two ways in which Temporal's client says so."""
    status = getattr(getattr(error, "status", None), "name", "")
    return status in _NO_CREDENTIALS or bool(_REFUSED_CREDENTIALS.search(str(error)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
