"""Programs of the operating system: said with the one command that adds them, added where we may."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from setup.certificates import certificate_file
from setup.console import SetupError, run, say

_APT = (
    *("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"),
    *("install", "--no-install-recommends"),
)
_CREATE_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A program, the Debian packages that bring it, and whether it is there."""

    name: str
    packages: tuple[str, ...]
    present: Callable[[Mapping[str, str]], bool]


def _on_path(program: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda environment: shutil.which(program, path=environment.get("PATH")) is not None


def _has_haproxy(environment: Mapping[str, str]) -> bool:
    return _on_path("haproxy")(environment) or Path("/usr/sbin/haproxy").exists()


def _has_postgres(environment: Mapping[str, str]) -> bool:
    return _on_path("initdb")(environment) or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


CERTIFICATES = Need(
    name="a bundle of certificate authorities",
    packages=("ca-certificates",),
    present=lambda environment: certificate_file(environment) is not None,
)
GIT = Need(name="git", packages=("git",), present=_on_path("git"))
BUBBLEWRAP = Need(name="bubblewrap", packages=("bubblewrap",), present=_on_path("bwrap"))
# In /usr/sbin, which is not on everybody's PATH; its service is not used, the local target runs its own.
HAPROXY = Need(name="haproxy", packages=("haproxy",), present=_has_haproxy)
POSTGRES = Need(name="PostgreSQL's server programs", packages=("postgresql",), present=_has_postgres)
# Two hosts on one machine, and a reading of docker-compose.yml; both are for tests alone.
NAMESPACES = Need(name="ip", packages=("iproute2",), present=_on_path("ip"))
COMPOSE = Need(name="docker-compose", packages=("docker-compose",), present=_on_path("docker-compose"))

FOR_DOWNLOADS = (CERTIFICATES,)
FOR_BUILDS = (GIT, BUBBLEWRAP, HAPROXY)
FOR_MOUNT = (GIT,)
FOR_TESTS = (POSTGRES, NAMESPACES, COMPOSE)


def ensure_system(needs: Iterable[Need], environment: Mapping[str, str], *, root: bool) -> None:
    """Add what is missing as root on Debian or Ubuntu. Raises SetupError with the command for anybody else."""
    missing = [need for need in needs if not need.present(environment)]
    if not missing:
        return
    names = " and ".join(need.name for need in missing)
    packages = [package for need in missing for package in need.packages]
    command = f"apt-get install {' '.join(packages)}"
    if not root or not _on_path("apt-get")(environment):
        how = f"sudo {command}" if _on_path("apt-get")(environment) else f"packages {', '.join(packages)} have it"
        raise SetupError(f"missing: {names}. Add it with: {how}")
    say(f"missing: {names}; adding it: {command}")
    if POSTGRES in missing and not _CREATE_CLUSTER.exists():
        _install(["postgresql-common"], environment)
        with _no_cluster():
            _install(packages, environment)
    else:
        _install(packages, environment)
    still = [need.name for need in missing if not need.present(environment)]
    if still:
        raise SetupError(f"{command} went well, and {' and '.join(still)} is still not found")


def _install(packages: Sequence[str], environment: Mapping[str, str]) -> None:
    quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    failure = f"apt-get install {' '.join(packages)} failed"
    try:
        run([*_APT, *packages], environment=quiet, failure=failure)
    except SetupError:  # a new machine has no package lists, an old one outdated ones
        run(["apt-get", "-q", "update"], environment=quiet, failure="apt-get update failed")
        run([*_APT, *packages], environment=quiet, failure=failure)


@contextlib.contextmanager
def _no_cluster() -> Iterator[None]:
    """Debian's package would create and start a database server of its own; the tests make theirs."""
    before = _CREATE_CLUSTER.read_bytes()
    _CREATE_CLUSTER.write_bytes(before + b"\ncreate_main_cluster = false\n")
    try:
        yield
    finally:
        _CREATE_CLUSTER.write_bytes(before)
