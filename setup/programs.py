"""Servers that the tests run beside ours, made once from their sources into .tools/bin; none of them is shipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from setup.console import CHECKOUT, TOOLS, SetupError, run, say
from setup.go import Go
from setup.server import drafts

BIN = TOOLS / "bin"


class Origin(Protocol):
    """Where programs come from. ``names`` are what they are called here; ``version`` is compared as a whole."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def version(self) -> str: ...

    def make(self, go: Go, folder: Path) -> Mapping[str, Path]:
        """Make them below the empty ``folder``: name to file. Raises SetupError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """``go install`` of ``module``, which is ``path@version``."""

    name: str
    module: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def version(self) -> str:
        return self.module

    def make(self, go: Go, folder: Path) -> Mapping[str, Path]:
        return {self.name: go.install(self.module, into=folder)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """An OpenTelemetry collector of the parts that ``manifest`` names, put together by its ``builder``."""

    name: str
    builder: str
    manifest: Path

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def version(self) -> str:
        return f"{self.builder}\n{self.manifest.read_text()}"

    def make(self, go: Go, folder: Path) -> Mapping[str, Path]:
        builder, made = go.install(self.builder, into=folder), TOOLS / "collector"
        settings = go.settings()
        settings["PATH"] = f"{go.found().parent}:{settings.get('PATH', os.defpath)}"
        shutil.rmtree(made, ignore_errors=True)
        say(f"building {self.name}: some minutes, only this once")
        go.compile([builder, "--config", self.manifest], settings, what=self.name)
        return {self.name: made / self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """Programs of a Debian package that is not installed: its installation would start a service."""

    package: str
    names: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.package

    def make(self, go: Go, folder: Path) -> Mapping[str, Path]:
        say(f"fetching the programs of Debian's {self.package}")
        # As root, apt would fetch as a user that cannot enter the folder.
        fetch = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", self.package]
        try:
            run(fetch, environment=go.environment, failure="no package", folder=folder)
        except SetupError:  # a new machine has no package lists
            run(["apt-get", "-q", "update"], environment=go.environment, failure="apt-get update failed")
            run(fetch, environment=go.environment, failure=f"{self.package} cannot be fetched", folder=folder)
        (archive,) = folder.glob("*.deb")
        run(["dpkg-deb", "-x", archive, folder / "x"], environment=go.environment, failure="it cannot be unpacked")
        return {name: folder / "x" / "usr" / "bin" / name for name in self.names}


# The same server as in the pinned `temporal` command, so that most of it is compiled already.
FOR_TESTS: tuple[Origin, ...] = (
    Built(name="temporal-server", module="go.temporal.io/server/cmd/server@v1.29.1"),
    Built(name="temporal-sql-tool", module="go.temporal.io/server/cmd/tools/sql@v1.29.1"),
    Built(name="versitygw", module="github.com/versity/versitygw/cmd/versitygw@v1.8.0"),
    Assembled(
        name="mendwork-collector",
        builder="go.opentelemetry.io/collector/cmd/builder@v0.155.0",
        manifest=CHECKOUT / "ops" / "collector" / "builder.yaml",
    ),
    Unpacked(package="prometheus", names=("prometheus", "promtool")),
)


def ensure_programs(go: Go, *, origins: Iterable[Origin] = FOR_TESTS, into: Path = BIN) -> None:
    """Make those that are missing or of another version. Raises SetupError."""
    for origin in origins:
        if _there(origin, into):
            continue
        with drafts(into) as folder:
            for name, made in origin.make(go, folder).items():
                _stamp(name, into).unlink(missing_ok=True)
                made.chmod(0o755)
                shutil.move(made, into / name)
        for name in origin.names:
            _stamp(name, into).write_text(origin.version)


def find_program(name: str, *, origins: Iterable[Origin] = FOR_TESTS, into: Path = BIN) -> Path:
    """One of them. Raises SetupError with the command that makes it."""
    origin = next(origin for origin in origins if name in origin.names)
    if not _there(origin, into):
        raise SetupError(f"{name} is not here in its version, {origin.version.splitlines()[0]}: run `make setup-test`")
    return into / name


def _there(origin: Origin, folder: Path) -> bool:
    stamps = {folder / name: _stamp(name, folder) for name in origin.names}
    return all(
        program.is_file() and stamp.is_file() and stamp.read_text() == origin.version
        for program, stamp in stamps.items()
    )


def _stamp(name: str, folder: Path) -> Path:
    """Holds what the program beside it was made from."""
    return folder / f".{name}.module"
