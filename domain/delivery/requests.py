"""What starts a delivery, decoded from plain JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from domain.build.requests import decode
from domain.errors import InvalidInput, UnknownName
from domain.risk.evidence import Made

DELIVER, ROLLBACK = "deliver", "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRequest:
    """The start input of a DeliverySaga. ``commit`` is a branch or a SHA of the project's repository.

    A rollback takes release ``release`` out of production and goes back to release ``to`` (0: the one before it).
    ``build`` is the build that the commit comes from ("": none, then it is fetched), which has pinned it; ``made`` says
    how it came to be. ``approved`` may hold "release"; ``unattended``: nobody answers, so what would be asked is
    refused. ``by`` is who wants it.
    """

    project: str
    kind: str = DELIVER
    commit: str = ""
    release: int = 0
    to: int = 0
    build: str = ""
    by: str = ""
    reason: str = ""
    approved: tuple[str, ...] = ()
    unattended: bool = False
    allow_missing: tuple[str, ...] = ()
    made: Made = field(default_factory=lambda: Made(unknown=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What a DeliverySaga ends with: ``status`` is "promoted", "rolled back", "undelivered" or "unclear"; ``residues``
    are sentences for what could not be undone."""

    project: str
    release: int
    status: str
    sentence: str
    residues: tuple[str, ...] = ()


def decode_delivery_request(value: Any) -> DeliveryRequest:
    """Raises InvalidInput with one sentence."""
    request = decode(DeliveryRequest, value)
    if request.kind not in (DELIVER, ROLLBACK):
        raise UnknownName.among("kind of delivery", request.kind[:40], (DELIVER, ROLLBACK))
    if request.kind == DELIVER and not request.commit.strip():
        raise InvalidInput("name the commit to deliver: a branch or a SHA")
    if request.kind == ROLLBACK and request.release < 1:
        raise InvalidInput("name the release to roll back: a number from 1")
    if request.to < 0 or (request.kind == ROLLBACK and request.to >= request.release):
        raise InvalidInput(f"release {request.release} can be rolled back to an older one, not to {request.to}")
    for name in request.approved:
        if name != "release":
            raise UnknownName.among("approval", name[:40], ("release",))
    return request


def delivery_saga_id(build: str) -> str:
    """The workflow id of a build's delivery."""
    return f"{build}-release"


def watch_id(saga: str) -> str:
    """The workflow id of a delivery's watch."""
    return f"{saga}-watch"


def delivery_name(project: str, number: int) -> str:
    """The name, and workflow id, of a project's ``number``-th delivery that was started alone."""
    return f"deliver-{project}-{number}"
