"""One request that a service has to answer well: of a health check, or of a synthetic load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """GET ``path``; the answer has to have ``status`` and to contain ``contains`` ("": any body)."""

    path: str = "/"
    status: int = 200
    contains: str = ""
