"""How failures are written into histories."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter

SEALED = "Encoded failure"
"""What stands in the place of a sentence that a codec encrypts; Temporal's other SDKs write the same."""


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


class SealedFailureConverter(TracelessFailureConverter):
    """As above, and the sentence of each failure moves to where the codec encrypts it. Its class name stays readable:
    the server decides by it whether to try again."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """See FailureConverter; causes that were sealed before stay as they are."""
        super().to_failure(exception, payload_converter, failure)
        while failure.ByteSize():
            if failure.message != SEALED:
                told = {"message": failure.message, "stack_trace": ""}
                failure.encoded_attributes.CopyFrom(payload_converter.to_payloads([told])[0])
                failure.message = SEALED
            if not failure.HasField("cause"):
                return
            failure = failure.cause
