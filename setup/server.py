"""Temporal's server: found, downloaded by the SDK, or built from its sources, once."""

from __future__ import annotations

import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from adapters.temporal.finding import MODULE, find_server, refusal
from adapters.temporal.finding import TOOLS as PROGRAMS
from domain.errors import InvalidInput, ServerUnavailable
from setup.console import SetupError, run, say
from setup.go import Go
from setup.python import PYTHON

_DOWNLOADS = "https://temporal.download/"
_REACHED_WITHIN = 5.0
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


def ensure_server(environment: Mapping[str, str], go: Go) -> None:
    """Have a server program that ``mendwork dev`` will find. Raises SetupError with all the ways to one."""
    named = environment.get("MENDWORK_TEMPORAL__SERVER")
    try:
        find_server(explicit=Path(named) if named else None, environment=environment)
    except InvalidInput as error:
        raise SetupError(str(error)) from error
    except ServerUnavailable as error:
        if not _download(environment):
            _build(go, otherwise=str(error))


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
        with drafts() as folder:
            argv = [str(PYTHON), "-c", _SDK_DOWNLOAD, str(folder)]
            run(argv, environment=environment, failure="the SDK's download of the Temporal server failed")
            _adopt(next(path for path in folder.iterdir() if path.is_file()))
    except SetupError as error:
        say(str(error))
        return False
    return True


def _build(go: Go, *, otherwise: str) -> None:
    with drafts() as folder:
        _adopt(go.install(MODULE, into=folder, otherwise=otherwise))


@contextmanager
def drafts(beside: Path = PROGRAMS) -> Iterator[Path]:
    """A folder beside the final place: what an interruption leaves there is never taken for a program."""
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=beside, prefix="draft-") as folder:
        yield Path(folder)


def _adopt(program: Path) -> None:
    program.chmod(0o755)
    if reason := refusal(program):
        raise SetupError(reason)
    program.replace(PROGRAMS / "temporal")
