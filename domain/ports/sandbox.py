"""Running model-written code where it can do no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRun:
    """One command in one folder. A copy of ``folder`` is ``/work``, the working directory; what the run writes there is
    thrown away with it. ``toolchain`` are folders, files or links of the host, shown read-only at their own places.

    ``label`` names the attempt: whatever an earlier run of the same label left running is killed first. What the run
    writes counts against ``memory_bytes``; ``scratch_bytes`` is the size of ``/work`` and of ``/tmp``, each.
    ``allow_missing`` names isolations that the caller accepts to do without ("memory", "pids").
    Sizes in bytes, times in seconds. ``log`` is where stdout and stderr go, interleaved, cut at ``log_bytes``.
    """

    label: str
    argv: tuple[str, ...]
    folder: Path
    log: Path
    toolchain: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 600.0
    memory_bytes: int = 2_000_000_000
    processes: int = 256
    log_bytes: int = 16_000_000
    scratch_bytes: int = 1_000_000_000
    allow_missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """``exit_code`` as a shell gives it (128 + signal when killed); ``ended`` is "exited", or the limit that was hit:
    "timeout", "memory", "processes", "log" (still printing when its time was over). ``seconds`` is wall time,
    ``log_cut`` whether the log was cut at its limit."""

    exit_code: int
    ended: str
    seconds: float
    log_cut: bool


class Sandbox(Protocol):
    """Isolation is declared, never silently weaker."""

    def missing(self) -> Mapping[str, str]:
        """Isolations that cannot be had here: name ("engine", "memory", "pids") to a sentence with the cure."""
        ...

    async def run(self, run: SandboxRun) -> SandboxResult:
        """Run to the end, the limit or cancellation; on all three every process of the run is dead when it returns.

        Raises IsolationMissing when something is missing that the run does not allow, ResourceShort when this machine
        cannot start the run now, TooLarge when the folder does not fit, InvalidInput for a run that cannot be.
        """
        ...
