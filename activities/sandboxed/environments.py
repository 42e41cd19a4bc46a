"""Setting up a project's dependencies, once for each state of what decides them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareInput:
    """``commit`` is to be tested. ``base`` is the commit whose manifests are trusted ("" trusts those of ``commit``),
    ``allowed`` are names of packages that a person has allowed since."""

    label: str
    project: str
    commit: str
    base: str = ""
    allowed: tuple[str, ...] = ()
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """``key`` names the environment for later runs; "" with ``unknown`` names, which a person has to allow first.
    ``built``: it was not there yet; ``seconds`` of wall time and ``bytes`` on disk, ``log`` is a digest."""

    key: str
    unknown: tuple[str, ...] = ()
    built: bool = False
    seconds: float = 0.0
    bytes: int = 0
    log: str = ""
