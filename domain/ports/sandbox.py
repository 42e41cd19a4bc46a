"""Running model-written code where it can do no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """The one way out of a run: ``port`` of its own loopback leads to the same port of this machine's, over one unix
    socket made at ``socket`` and gone with the run. Bounded in connections at once and in bytes of the whole run."""

    port: int
    socket: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """What is taken out of a run that exited with 0: a GNU tar of ``folder`` (relative to ``/work``, "." is all of
    it), written to the file ``into``, at most ``most_bytes`` of it.

    The tar is made inside, when every other process of the run is dead, so nothing changes while it is read and no
    link leads anywhere but into the sandbox. It is untrusted all the same: its reader has to check every member.
    """

    folder: str
    into: Path
    most_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRun:
    """One command in one folder. A copy of ``folder`` is ``/work``, the working directory; what the run writes there is
    thrown away with it. ``toolchain`` are folders, files or links of the host, shown read-only at their own places.

    ``label`` names the attempt: whatever an earlier run of the same label left running is killed first. What the run
    writes counts against ``memory_bytes``; ``scratch_bytes`` is the size of ``/work`` and of ``/tmp``, each.
    ``allow_missing`` names isolations that the caller accepts to do without ("memory", "pids", "network").
    Sizes in bytes, times in seconds. ``log`` is where stdout and stderr go, interleaved, cut at ``log_bytes``.
    Without ``outlet`` nothing outside can be reached; without ``collect`` nothing is taken out.
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
    outlet: Outlet | None = None
    collect: Collect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """``exit_code`` as a shell gives it (128 + signal when killed); ``ended`` is "exited", or the limit that was hit:
    "timeout", "memory", "processes", "log" (still printing when its time was over). ``seconds`` is wall time,
    ``log_cut`` whether the log was cut at its limit.

    ``reached`` counts the connections that the outlet's port took, ``refused`` those that it did not. ``collected``:
    the whole tar is in its file; otherwise there is no file (the folder is not there, or is a link, or the command
    failed or hit a limit)."""

    exit_code: int
    ended: str
    seconds: float
    log_cut: bool
    reached: int = 0
    refused: int = 0
    collected: bool = False


class Sandbox(Protocol):
    """Isolation is declared, never silently weaker."""

    def missing(self) -> Mapping[str, str]:
        """Isolations that cannot be had here: name ("engine", "network", "memory", "pids") to a sentence with the
        cure. "network" lacks where a run could reach more than its own loopback."""
        ...

    async def run(self, run: SandboxRun) -> SandboxResult:
        """Run to the end, the limit or cancellation; on all three every process of the run is dead when it returns.

        Raises IsolationMissing when something is missing that the run does not allow, ResourceShort when this machine
        cannot start the run now, TooLarge when the folder or what is collected does not fit, InvalidInput for a run
        that cannot be. After any of them nothing of an outlet or a collection is left.
        """
        ...
