"""Whether bubblewrap can isolate on this machine, found out by trying."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.sandbox import arguments
from adapters.sandbox.descriptors import Ends, connect
from adapters.sandbox.ways.inside import ETC

INSTALL = "apt-get install -y bubblewrap"
_ALLOW = (
    "sysctl -e -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 "
    "kernel.apparmor_restrict_unprivileged_userns=0"
)
_OPEN = (
    "bubblewrap does not close the network here ({0}): what runs could reach other services; install Debian's "
    "own: apt-get install -y --reinstall bubblewrap"
)

Flags = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """``flags`` are those of this version, None when nothing can be run; ``missing`` as the port has it."""

    flags: Flags | None
    missing: dict[str, str] = field(default_factory=dict)


def try_engine(path: str, wiring: Callable[[Ends, Flags], arguments.Wiring]) -> Trial:
    """Run nothing once, as everything is run. ``path`` is where the host's programs are looked up."""
    absent = [name for name in arguments.PROGRAMS if not shutil.which(name, path=path)]
    if absent:
        return Trial(flags=None, missing={"engine": f"the sandbox needs {', '.join(absent)}; install it: {INSTALL}"})
    try:
        flags = _known_flags(path)
        with connect(ETC) as ends:
            trial = _call(arguments.trial_argv(wiring(ends, flags)), path, ends.inherited())
        failure = trial.stderr.strip() or f"exit code {trial.returncode}" if trial.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure:
        sentence = f"bubblewrap cannot isolate here ({failure.splitlines()[-1]}); allow it to: {_ALLOW}"
        return Trial(flags=None, missing={"engine": sentence})
    hole = open_network(trial.stdout, ours=os.readlink("/proc/self/ns/net"))
    return Trial(flags=flags, missing={"network": _OPEN.format(hole)} if hole else {})


def open_network(seen: str, *, ours: str) -> str:
    """What is wrong with the network that a run said it has: the name of its namespace, then /proc/net/dev. "" when
    it is a namespace of its own with nothing but loopback; ``ours`` is this process's."""
    namespace, _, table = seen.partition("\n")
    interfaces = [line.partition(":")[0].strip() for line in table.splitlines() if ":" in line]
    if not namespace.startswith("net:") or namespace == ours:
        return "a run shares this machine's network"
    return "" if interfaces == ["lo"] else f"a run has the interfaces {', '.join(interfaces) or 'that nobody can list'}"


def _known_flags(path: str) -> Flags:
    known = _call(["bwrap", "--help"], path).stdout
    return ("--disable-userns",) if "--disable-userns" in known else ()


def _call(argv: list[str], path: str, inherited: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        pass_fds=inherited,
        env={"PATH": path},
        cwd="/",
        timeout=20,
        check=False,
    )
