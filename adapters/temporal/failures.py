"""How failures are written into histories."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter


class TracelessFailureConverter(DefaultFailureConverter):
    """Failures without stack traces: a history is kept for weeks and read by many, and a trace tells the paths of one
    machine. The class name and the sentence stay; the trace is in the worker's log."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """See FailureConverter; the causes lose their traces too."""
        super().to_failure(exception, payload_converter, failure)
        while failure.ByteSize():
            failure.stack_trace = ""
            if not failure.HasField("cause"):
                return
            failure = failure.cause
