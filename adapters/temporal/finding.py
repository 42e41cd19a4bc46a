"""Finding a Temporal server program on this machine. Standard library and domain only: the set-up uses it too."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from domain.errors import InvalidInput, ServerUnavailable

MODULE = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "bin"
OLDEST = (1, 29)  # older servers know no fairness keys
_ANSWERS_WITHIN = 15.0


def find_server(*, explicit: Path | None, environment: Mapping[str, str], tools: Path = TOOLS) -> Path:
    """The server program to start. Raises InvalidInput for a bad setting, ServerUnavailable where there is none."""
    if explicit is not None:
        if reason := refusal(explicit):
            raise InvalidInput(f"[temporal].server: {reason}")
        return explicit
    reasons = []
    for candidate in _candidates(environment, tools):
        reason = refusal(candidate)
        if not reason:
            return candidate
        reasons.append(reason)
    tried = f" ({'; '.join(reasons)})" if reasons else ""
    raise ServerUnavailable(
        f"no Temporal server found{tried}. One of these gives one: name it in [temporal].server of mendwork.toml; "
        f"put `temporal` with server {OLDEST[0]}.{OLDEST[1]} or newer on PATH; run `make demo` where "
        f"temporal.download can be reached; or, with Go 1.25 or newer, `go install {MODULE}`"
    )


def refusal(program: Path) -> str:
    """Why ``program`` cannot be the server; empty when it can."""
    try:
        answer = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWERS_WITHIN,
            check=True,
        )
    except OSError as error:
        return f"{program} does not start: {error.strerror}"
    except subprocess.SubprocessError:
        return f"{program} --version fails"
    found = re.search(r"Server (\d+)\.(\d+)", answer.stdout)
    if found is None:
        return f"{program} is no Temporal server"
    if (int(found[1]), int(found[2])) < OLDEST:
        return f"{program} has server {found[1]}.{found[2]}, older than {OLDEST[0]}.{OLDEST[1]}"
    return ""


def _candidates(environment: Mapping[str, str], tools: Path) -> Iterator[Path]:
    if on_path := shutil.which("temporal", path=environment.get("PATH", "")):
        yield Path(on_path)
    places = [tools / "temporal"]
    if home := environment.get("HOME"):
        places.append(Path(home) / "go" / "bin" / "temporal")
    yield from (place for place in places if place.is_file())
