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
class Egress:
    """The hosts that a run may reach by name, through a proxy that it finds in its environment (HTTPS_PROXY).

    ``hosts`` are "name" (port 443) or "name:port". Nothing is resolved inside. Outside, a name is looked for in
    ``hosts`` before it is resolved; addresses, and names of this machine or of a private network, are refused unless
    ``hosts`` has just that name with its port. Only a host with a port may be asked in plain HTTP. Bounded in
    connections at once and in bytes of the whole run. ``socket`` is made there and gone with the run.
    """

    hosts: tuple[str, ...]
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
    Without ``outlet`` and ``egress`` nothing outside can be reached; without ``collect`` nothing is taken out.

    ``mounts`` are folders of the host that are shown read-only in ``/work``, by their place there (relative); what the
    folder has at that place is left out. ``programs`` are folders in ``/work`` that come first on PATH.
    With ``kept``, an empty folder of the host, that folder itself is ``/work``: what the run writes there stays. It
    is another user's afterwards where Mendwork is root. ``folder`` may be a tar file: its content is copied in.
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
    egress: Egress | None = None
    mounts: Mapping[str, Path] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    kept: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """``exit_code`` as a shell gives it (128 + signal when killed); ``ended`` is "exited", or the limit that was hit:
    "timeout", "memory", "processes", "log" (still printing when its time was over). ``seconds`` is wall time,
    ``log_cut`` whether the log was cut at its limit.

    ``reached`` counts the connections that the outlet's port took, ``refused`` those that it did not. ``collected``:
    the whole tar is in its file; otherwise there is no file (the folder is not there, or is a link, or the command
    failed or hit a limit). ``refused_hosts`` are those that the run asked its egress for and did not get, each with its
    port, sorted and at most 50: safe to print."""

    exit_code: int
    ended: str
    seconds: float
    log_cut: bool
    reached: int = 0
    refused: int = 0
    collected: bool = False
    refused_hosts: tuple[str, ...] = ()


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
        that cannot be. After any of them nothing of an outlet, an egress or a collection is left.
        """
        ...
