"""What can go wrong with a request, each with its HTTP status and a stable code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One field of a request that cannot be accepted."""

    field: str
    message: str


class ServiceError(Exception):
    """An error that the client gets to see as it is."""

    status = 500
    code = "internal_error"

    def __init__(self, message: str, *, details: tuple[Problem, ...] = (), headers: dict[str, str] | None = None):
        super().__init__(message)
        self.message = message
        self.details = details
        self.headers = headers or {}

    def as_json(self) -> dict[str, object]:
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = [{"field": p.field, "message": p.message} for p in self.details]
        return {"error": error}


class MalformedRequest(ServiceError):
    status = 400
    code = "malformed_request"


class NotFound(ServiceError):
    status = 404
    code = "not_found"


class MethodNotAllowed(ServiceError):
    status = 405
    code = "method_not_allowed"


class RevisionConflict(ServiceError):
    """The note was changed since the client read it."""

    status = 412
    code = "revision_conflict"


class BodyTooLarge(ServiceError):
    status = 413
    code = "body_too_large"


class UnsupportedMediaType(ServiceError):
    status = 415
    code = "unsupported_media_type"


class InvalidFields(ServiceError):
    status = 422
    code = "invalid_fields"

    def __init__(self, problems: list[Problem]):
        names = ", ".join(dict.fromkeys(problem.field for problem in problems))
        super().__init__(f"invalid: {names}", details=tuple(problems))


class Unavailable(ServiceError):
    status = 503
    code = "unavailable"
