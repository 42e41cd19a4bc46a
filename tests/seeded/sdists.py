"""Source distributions that carry their own tests: by pinned version and hash, kept outside the tree.

``fetched("click")`` is the archive, ``unpacked("click", folder)`` its files. The registries are asked by their own
clients (pip, npm) and only for what the cache lacks: ``MENDWORK_SDISTS``, else ``mendwork/sdists`` of the user's cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from setup.python import ensure_uv, uv_environment

_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdist:
    """``kind`` is whose registry it is of ("pip", "npm"); ``package`` where its code lies, ``tests`` its tests."""

    kind: str
    name: str
    version: str
    filename: str
    sha256: str
    package: str
    tests: str


SDISTS: Mapping[str, Sdist] = {
    "click": Sdist(
        kind="pip",
        name="click",
        version="8.1.8",
        filename="click-8.1.8.tar.gz",
        sha256="ed53c9d8990d83c2a27deae68e4ee337473f6330c040a31d4225c9574d16096a",
        package="src/click",
        tests="tests",
    ),
    "attrs": Sdist(
        kind="pip",
        name="attrs",
        version="25.3.0",
        filename="attrs-25.3.0.tar.gz",
        sha256="75d7cefc7fb576747b2c81b4442d4d4a1ce0900973527c011d1030fd3bf4af1b",
        package="src/attr",
        tests="tests",
    ),
    "more-itertools": Sdist(
        kind="pip",
        name="more-itertools",
        version="10.7.0",
        filename="more_itertools-10.7.0.tar.gz",
        sha256="9fddd5403be01a94b204faadcff459ec3568cf110265d3c54323e1e866ad29d3",
        package="more_itertools",
        tests="tests",
    ),
    "jinja2": Sdist(
        kind="pip",
        name="jinja2",
        version="3.1.6",
        filename="jinja2-3.1.6.tar.gz",
        sha256="0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d",
        package="src/jinja2",
        tests="tests",
    ),
    "qs": Sdist(
        kind="npm",
        name="qs",
        version="6.13.1",
        filename="qs-6.13.1.tgz",
        sha256="ecb5c6d65dff07e09146187b93363de28b06c6787361a808879ec3f0b7f4a6c4",
        package="lib",
        tests="test",
    ),
    "minimist": Sdist(
        kind="npm",
        name="minimist",
        version="1.2.8",
        filename="minimist-1.2.8.tgz",
        sha256="350a76c115b393c19d24654834261e5dc9f0e8cc5e08f3937fa80140f3e4ce83",
        package=".",
        tests="test",
    ),
}


def cache(environment: Mapping[str, str]) -> Path:
    """The folder of the archives."""
    if named := environment.get("MENDWORK_SDISTS"):
        return Path(named)
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or tempfile.gettempdir(), ".cache")
    return Path(base) / "mendwork" / "sdists"


def fetched(name: str, *, environment: Mapping[str, str] = os.environ) -> Path:
    """The pinned archive of ``name``; asks its registry only when the cache has none. Raises RuntimeError."""
    sdist = SDISTS[name]
    folder = cache(environment)
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / sdist.filename
    with _alone(folder / f"{sdist.filename}.lock"):
        if not _is_pinned(archive, sdist):
            with tempfile.TemporaryDirectory(dir=folder) as draft:
                _download(sdist, Path(draft), environment)
                found = Path(draft) / sdist.filename
                if not _is_pinned(found, sdist):
                    raise RuntimeError(f"{sdist.filename} is not the pinned one: its SHA-256 differs")
                found.replace(archive)
    return archive


def unpacked(name: str, folder: Path, *, environment: Mapping[str, str] = os.environ) -> Path:
    """The archive's files in ``folder``, which must not exist yet, without the archive's own top folder."""
    with (
        tempfile.TemporaryDirectory(dir=folder.parent) as draft,
        tarfile.open(fetched(name, environment=environment)) as tar,
    ):
        if hasattr(tarfile, "data_filter"):
            tar.extractall(draft, filter="data")
        else:
            tar.extractall(draft)  # noqa: S202  the archive is the pinned one, by its hash
        (top,) = Path(draft).iterdir()
        shutil.move(top, folder)
    return folder


def _download(sdist: Sdist, folder: Path, environment: Mapping[str, str]) -> None:
    wanted = {"pip": _by_pip, "npm": _by_npm}[sdist.kind](sdist, folder, environment)
    ran = subprocess.run(wanted[0], cwd=folder, env=wanted[1], capture_output=True, text=True, timeout=_SECONDS)
    if ran.returncode:
        raise RuntimeError(f"{sdist.name} {sdist.version} cannot be fetched: {ran.stderr[-2000:]}")


Command = tuple[list[str], dict[str, str]]


def _by_pip(sdist: Sdist, folder: Path, environment: Mapping[str, str]) -> Command:
    """pip by way of our own uv: the test environment has none. pip checks the hash too."""
    pins = folder / "pins.txt"
    pins.write_text(f"{sdist.name}=={sdist.version} --hash=sha256:{sdist.sha256}\n")
    argv = [str(ensure_uv(environment)), "tool", "run", "--quiet", "pip", "download", "--quiet", "--require-hashes"]
    argv += ["--no-deps", "--no-binary", ":all:", "--dest", str(folder), "--requirement", str(pins)]
    return argv, uv_environment(environment)


def _by_npm(sdist: Sdist, folder: Path, environment: Mapping[str, str]) -> Command:
    argv = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
    return [*argv, f"{sdist.name}@{sdist.version}"], dict(environment)


def _is_pinned(archive: Path, sdist: Sdist) -> bool:
    return archive.is_file() and hashlib.sha256(archive.read_bytes()).hexdigest() == sdist.sha256


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time, in all test processes."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
