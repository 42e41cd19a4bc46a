"""Reading classified faults out of Temporal's failures."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, FailureError, TimeoutError

with workflow.unsafe.imports_passed_through():
    from domain.errors import MendworkError, NeedsHuman
    from domain.recovery.fault import Fault

LOST = "WorkerLost"


class Stopped(NeedsHuman):
    """The build ends for a fault of another kind, which a saga reports by its class name."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def faults_of(error: BaseException) -> tuple[Fault, ...]:
    """The faults of all tries, oldest first; always at least one."""
    cause = _innermost(error)
    if isinstance(cause, ApplicationError):
        listed = _listed(cause.details)
        return listed or (_fault(cause.type or "unknown", cause.message, error),)
    if isinstance(cause, TimeoutError):
        earlier = _listed(cause.last_heartbeat_details)
        return (*earlier, _fault(LOST, "the worker was lost, or the time limit was reached", error))
    if isinstance(cause, Stopped):
        return (Fault(kind=cause.kind, sentence=str(cause)[:300], source="saga", number=1),)
    if isinstance(cause, MendworkError):
        return (Fault.of(cause, source="saga", number=1),)
    return (_fault(type(cause).__name__, str(cause), error),)


def last_fault(error: BaseException) -> Fault:
    """The fault that ended it."""
    return faults_of(error)[-1]


def failure(fault: Fault) -> ApplicationError:
    """The failure that a saga ends with: the fault's class name as its type."""
    return ApplicationError(fault.sentence, type=fault.kind, non_retryable=True)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, ActivityError | ChildWorkflowError) and isinstance(error.cause, FailureError):
        error = error.cause
    return error


def _listed(details: Any) -> tuple[Fault, ...]:
    raw = details[0] if details and isinstance(details[0], list) else []
    return tuple(Fault.from_mapping(item) for item in raw if isinstance(item, dict))


def _fault(kind: str, sentence: str, error: BaseException) -> Fault:
    source = error.activity_type if isinstance(error, ActivityError) else "saga"
    return Fault(kind=kind, sentence=sentence[:300], source=source, number=0)
