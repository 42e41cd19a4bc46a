"""Snapshots of a build between two phases: what it carries, pinned, and how another build goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSnapshotInput:
    """``state`` is what the build carries, as JSON; ``commits`` are those that it needs."""

    project: str
    build: str
    number: int
    state: Mapping[str, Any]
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSnapshotInput:
    """``token`` is ``<build>@<number>``; ``fork``: the build may still run."""

    token: str
    fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    """``phase`` is the next to run, ``state`` the digest of what is carried, ``spent`` what the build had used by then
    in micro-dollars, with what it had carried over itself; ``calls`` likewise."""

    token: str
    build: str
    number: int
    project: str
    phase: str
    state: str
    base: str
    head: str
    spent: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSnapshotInput:
    """Make the commits of a snapshot those of ``build``, a new one. ``models`` as in BuildRequest."""

    project: str
    build: str
    state: str
    base: str
    head: str
    models: tuple[str, ...] = ()
