"""The command line of a sandboxed run, from the outside in: control group, unprivileged user, bubblewrap, command."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox.toolchain import ALTERNATIVES, SYSTEM, SYSTEM_PATH, is_system
from adapters.sandbox.ways import inside
from domain.errors import InvalidInput
from domain.ports.sandbox import SandboxRun

PROGRAMS = ("bwrap", "setpriv", "prlimit", "unshare", "mount", "nice", "tar")
HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOBODY = "65534"
WORK = Path("/work")
_ETC_OF_HOST = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", str(ALTERNATIVES), "/etc/localtime")
_NEVER = tuple(Path(name) for name in ("/proc", "/sys", "/dev", "/etc", "/run"))

# Enters the groups before anything of the run exists. Exit 125 is only ever seen before the run's command starts.
ENTER = """ulimit -c 0; umask 022
while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done
shift; exec "$@"
"""
# In a mount namespace of its own: shows folders that only root can reach to a bubblewrap that is not root.
STAGE = """stage=$1; shift; n=0
mount -t tmpfs -o mode=755 none "$stage"
while [ "$1" != -- ]; do
  if [ -d "$2" ]; then mkdir "$stage/$n"; else : > "$stage/$n"; fi
  mount --bind -o "$1" "$2" "$stage/$n"; n=$((n+1)); shift 2
done
shift; exec "$@"
"""
# The copy arrives on stdin, which is a socket; the answer on it says that what follows is the run's own.
COPY_IN = "tar -xpf - -C /work --no-same-owner --warning=no-timestamp{0} || exit 125\n"
# What stays on the host comes from a run: no file of it may get another user's rights.
COPY_IN_KEPT = "tar -xf - -C /work --no-same-owner --no-same-permissions --warning=no-timestamp || exit 125\n"
# A daemon's parent returns when its port is open; the daemon dies with the run's process tree.
OPEN_WAYS = f'"$1" -D -q -f {inside.WAYS_FILE} </dev/null || exit 125; shift\n'
START = 'echo ready >&0\nexec "$@" </dev/null\n'
# Nobody of the run is left to change what is read, and "whole" says that the tar before it is.
START_AND_COLLECT = """folder=$1; shift; echo ready >&0
"$@" </dev/null; code=$?
kill -s KILL -- -1 2>/dev/null
[ "$code" = 0 ] && [ "$(readlink -f "$folder")" = "$folder" ] && [ -d "$folder" ] &&
  tar -C "$folder" --format=gnu --hard-dereference -cf - . >&0 && echo whole >&0
exit "$code"
"""
# Which network namespace a run is in, and the interfaces there.
LOOK_AROUND = "readlink /proc/self/ns/net && cat /proc/net/dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What one bubblewrap is started with. ``etc`` maps files in the sandbox to descriptors that hold their content,
    ``status`` is the descriptor that bubblewrap reports on, ``flags`` are those that only some versions know,
    ``most_processes`` is for all processes of the user together, ``haproxy`` the program that ways out need."""

    name: str
    as_root: bool
    flags: tuple[str, ...] = ()
    etc: Mapping[str, int]
    status: int
    most_processes: int
    entrances: tuple[Path, ...] = ()
    haproxy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bind:
    """A file or folder of the host, and its place inside."""

    source: Path
    place: str
    writable: bool = False


def run_argv(run: SandboxRun, wiring: Wiring) -> list[str]:
    """The whole command line for ``run``. Raises InvalidInput for a toolchain or an environment that cannot be."""
    shown = [path for path in run.toolchain if not is_system(_checked(path, wiring))]
    binds = _binds(run, [path for path in shown if not path.is_symlink()])
    stage = _stage([bind.source for bind in binds]) if wiring.as_root and binds else None
    size = str(run.scratch_bytes)
    mounts = ["--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--dir", "/tmp/home"]  # noqa: S108
    mounts += [] if run.kept else ["--perms", "0755", "--size", size, "--tmpfs", str(WORK)]
    for number, bind in enumerate(binds):
        source = str(stage / str(number) if stage else bind.source)
        mounts += ["--bind" if bind.writable else "--ro-bind", source, bind.place]
    for path in shown:
        mounts += ["--symlink", str(path.resolve()), str(path)] if path.is_symlink() else []
    within = ["--chdir", str(WORK), *_environment(run), "--", "/bin/sh", "-c", *_script(run, wiring), *run.argv]
    return _outside(wiring, stage, binds) + bwrap_argv(wiring) + mounts + ["--remount-ro", "/", *within]


def _binds(run: SandboxRun, toolchain: Sequence[Path]) -> list[_Bind]:
    binds = [_Bind(source=path, place=str(path)) for path in toolchain]
    binds += [_Bind(source=source, place=place) for source, place in inside.sockets(run).items()]
    binds += [_Bind(source=run.kept, place=str(WORK), writable=True)] if run.kept else []
    return binds + [_Bind(source=folder, place=str(WORK / place)) for place, folder in run.mounts.items()]


def trial_argv(wiring: Wiring) -> list[str]:
    """A run that needs all that a run needs from the kernel, and tells what network it has."""
    return _outside(wiring, None, []) + bwrap_argv(wiring) + ["--remount-ro", "/", "--", "/bin/sh", "-c", LOOK_AROUND]


def bwrap_argv(wiring: Wiring) -> list[str]:
    """The isolation that every run has, and the system's folders, read-only."""
    argv = ["bwrap", "--unshare-all", "--unshare-user", *wiring.flags, "--uid", "1000", "--gid", "1000"]
    argv += ["--cap-drop", "ALL", "--hostname", wiring.name, "--die-with-parent", "--new-session", "--clearenv"]
    argv += ["--json-status-fd", str(wiring.status)]
    for folder in SYSTEM:
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC_OF_HOST:
        argv += ["--ro-bind-try", name, name]
    for name, descriptor in wiring.etc.items():
        argv += ["--file", str(descriptor), name]
    argv += ["--symlink", "/tmp", "/var/tmp", "--proc", "/proc", "--dev", "/dev"]  # noqa: S108
    return [*argv, "--perms", "1777", "--size", "64000000", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108


def _script(run: SandboxRun, wiring: Wiring) -> list[str]:
    left_out = "".join(f" --anchored --no-wildcards --exclude={shlex.quote(f'./{place}')}" for place in run.mounts)
    lines, words = [COPY_IN_KEPT if run.kept else COPY_IN.format(left_out)], ["run"]
    if run.outlet or run.egress:
        lines.append(OPEN_WAYS)
        words.append(wiring.haproxy)
    if run.collect:
        words.append(str(WORK / run.collect.folder))
    lines.append(START_AND_COLLECT if run.collect else START)
    return ["".join(lines), *words]


def _outside(wiring: Wiring, stage: Path | None, binds: Sequence[_Bind]) -> list[str]:
    argv = ["/bin/sh", "-c", ENTER, wiring.name, *map(str, wiring.entrances), "--"]
    # Groups limit a run; this keeps the machine usable where they are missing, and holds since the run is not root.
    argv += ["nice", "-n", "10", "prlimit", f"--nproc={wiring.most_processes}", "--"]
    if stage:
        pairs = [word for bind in binds for word in ("rw" if bind.writable else "ro", str(bind.source))]
        argv += ["unshare", "--mount", "--", "/bin/sh", "-ec", STAGE, wiring.name, str(stage), *pairs, "--"]
    if wiring.as_root:
        # Mapped to root, the run would own what the kernel gives to uid 0: /proc/scsi/scsi asks for no capability.
        argv += ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]
    return argv


def _stage(solid: Sequence[Path]) -> Path:
    for name in ("/mnt", "/srv", "/media", "/opt"):
        stage = Path(name)
        if stage.is_dir() and not any(path.resolve().is_relative_to(stage) for path in solid):
            return stage
    raise InvalidInput("the toolchain is spread over /mnt, /srv, /media and /opt: leave one of them out")


def _checked(path: Path, wiring: Wiring) -> Path:
    covers = any(kept.is_relative_to(path) for kept in (WORK, Path("/tmp"), SYSTEM[0]))  # noqa: S108
    if covers or any(path.is_relative_to(folder) for folder in _NEVER):
        raise InvalidInput(
            f"the toolchain folder {path} cannot be shown to a sandbox; name the folder of one toolchain"
        )
    if not path.is_absolute() or not os.path.exists(path):
        raise InvalidInput(f"the toolchain folder {path} does not exist; it must be an absolute path on this machine")
    for part in (path, path / "bin") if wiring.as_root else ():
        if part.exists() and not part.stat().st_mode & stat.S_IROTH:
            raise InvalidInput(f"the toolchain folder {path} is closed to other users; run: chmod -R o+rX {path}")
    return path


def _environment(run: SandboxRun) -> list[str]:
    programs = [str(p / "bin" if (p / "bin").is_dir() else p if p.is_dir() else p.parent) for p in run.toolchain]
    first = [str(WORK / folder) for folder in run.programs]
    values = {
        "PATH": os.pathsep.join(dict.fromkeys([*first, *programs, *SYSTEM_PATH])),
        "HOME": "/tmp/home",  # noqa: S108
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        **inside.variables(run),
        **run.environment,
    }
    if any(not name or "=" in name or "\0" in name + value for name, value in values.items()):
        raise InvalidInput("the sandbox's environment has a name or a value that no environment can hold")
    return [word for name, value in values.items() for word in ("--setenv", name, value)]
