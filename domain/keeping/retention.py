"""How long a project's things are kept once nothing needs them; days."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """``builds`` is for what ended builds wrote (blobs, logs), ``snapshots`` for what can be resumed, ``environments``
    for set-ups that nothing used since. The event log itself is never taken."""

    builds: float = 90.0
    snapshots: float = 30.0
    environments: float = 14.0
