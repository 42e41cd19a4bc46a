"""What became of the workflows behind the sagas: only the server that runs them knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

RUNNING = "running"
ENDED = "ended"
STOPPED = "stopped"
UNKNOWN = "unknown"

SWEEPER = "mendwork-sweeper"
HOUSEKEEPER = "mendwork-housekeeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``state`` is "running", "ended" (it came to its own end), "stopped" (it was terminated, timed out, failed or was
    cancelled) or "unknown" (this server has no such workflow); ``how`` tells a person, as in "was terminated"."""

    state: str
    how: str = ""


class Sagas(Protocol):
    """Looks only; starts and ends nothing."""

    async def standings(self, ids: Sequence[str]) -> Mapping[str, Standing]:
        """How the newest run of each workflow stands now, not as of a moment ago: every id has its entry.

        Raises ServerUnavailable.
        """
        ...


class Lanes(Protocol):
    """Speaks to the workflows that serialise the deliveries of an environment."""

    async def join(self, lane: str, *, start: Mapping[str, Any], joining: Mapping[str, Any]) -> None:
        """Say ``joining`` to ``lane``; where none runs, one is started with ``start`` and hears it first. May be
        repeated: the lane knows its sagas by name. Raises ServerUnavailable.
        """
        ...


def sweep_id(build: str) -> str:
    """The id of the workflow that undoes a stopped build; no build can have this name."""
    return f"{SWEEPER}:{build}"
