"""One delivery as its rows tell it: where it is, what it measured, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.ports.store import Event
from domain.trace.delivery.series import Point, in_series, point_of

PHASE = "delivery.phase"  # data: phase
BEGAN = "delivery.began"  # data: release, kind, commit, project, saga
OVER = "delivery.ended"  # data: status, sentence, release, residues
FAMILIES = ("delivery", "lane", "artifact", "release", "integration", "risk", "step", "watch")


@dataclass(slots=True, kw_only=True)
class DeliveryDetails:
    """``status`` is "" (none began), running, promoted, rolled back, undelivered or unclear; ``phase`` is the saga's.

    ``release`` is its number, ``previous`` what production had, ``saga`` the workflow that delivers, ``refused``
    when a person said no; ``waits`` is why its lane does not let it in. ``risk`` and ``integration`` are as their rows
    told them, ``fault`` is the class name of what ended it; ``residues`` are sentences.
    """

    saga: str = ""
    project: str = ""
    kind: str = ""
    release: int = 0
    previous: int = 0
    commit: str = ""
    artifact: str = ""
    status: str = ""
    phase: str = ""
    position: int = 0
    url: str = ""
    sentence: str = ""
    fault: str = ""
    refused: bool = False
    switched: bool = False
    rolled_back_to: int | None = None
    risk: dict[str, Any] = field(default_factory=dict)
    integration: dict[str, Any] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    watch: str = ""
    waits: str = ""
    residues: tuple[str, ...] = ()


def is_delivery(event: Event) -> bool:
    """Whether a delivery noted it, or it was asked or answered in one."""
    return event.kind.partition(".")[0] in FAMILIES or (event.kind.startswith("ask.") and bool(event.data.get("saga")))


def runs_alone(events: Iterable[Event]) -> bool:
    """Whether these are the rows of a delivery that no build started: its case is its own id."""
    kinds = {event.kind for event in events if not event.task}
    return "build.started" not in kinds and any(kind.partition(".")[0] in FAMILIES for kind in kinds)


def is_alone(event: Event) -> bool:
    """Whether a delivery begins with it that no build started."""
    return event.kind == BEGAN and event.data.get("saga") == event.build


def title_of(event: Event) -> str:
    """What a delivery that runs alone is called, from its first row."""
    what = "roll back" if event.data.get("kind") == "rollback" else "deliver"
    return f"{what} {str(event.data.get('commit', ''))[:12]}".strip()


def fold_delivery(told: DeliveryDetails, event: Event) -> None:
    """Bring ``told`` up to date with one row."""
    data = event.data
    match event.kind:
        case "delivery.phase":
            told.phase, told.status = str(data.get("phase", "")), "running"
        case "delivery.began":
            told.status, told.refused = "running", False
            told.saga, told.project, told.kind = (str(data.get(name, "")) for name in ("saga", "project", "kind"))
            told.release, told.commit = _number(data, "release"), str(data.get("commit", ""))
        case "lane.joined":
            told.position, told.waits = _number(data, "position"), str(data.get("reason", ""))
        case "lane.granted" | "lane.refused":
            told.position, told.waits = 0, ""
        case "delivery.snapshot":
            told.previous, told.url = _number(data, "release"), str(data.get("url", ""))
        case "artifact.built":
            told.artifact = str(data.get("artifact", ""))
        case "integration.ran":
            told.integration = dict(data)
        case "risk.scored":
            told.risk = dict(data)
        case "release.switched":
            told.switched, told.rolled_back_to = True, None
            told.previous, told.url = _number(data, "previous"), str(data.get("url", ""))
        case "release.rolled_back":
            told.rolled_back_to = _number(data, "to")
        case "ask.closed":
            told.refused = told.refused or (data.get("choice") == "reject" and told.status == "running")
        case "delivery.ended":
            told.status, told.sentence = str(data.get("status", "")), str(data.get("sentence", ""))
            told.fault, told.residues = str(data.get("fault", "")), texts(data.get("residues"))
        case _ if event.kind.startswith("watch."):
            _watched(told, event)


def _watched(told: DeliveryDetails, event: Event) -> None:
    point = point_of(event.data) if event.kind == "watch.window" else None
    if point is not None:
        told.points = in_series((*told.points, point))
    if event.kind == "watch.undecided":
        told.watch = f"undecided: {event.data.get('reason', '')}"
    if event.kind == "watch.ended":
        told.watch = f"{event.data.get('kind', '')}: {event.data.get('reason', '')}"


def texts(raw: Any) -> tuple[str, ...]:
    """A list of sentences; nothing for anything else."""
    return tuple(map(str, raw)) if isinstance(raw, list | tuple) else ()


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0
