"""``python -m adapters.models.scripted --answers FILE.yaml --bill FILE.jsonl [--port N] [--require-key VARIABLE]``.

Prints ``{"base_url": …}`` as one line when it listens; ends with 0 on SIGTERM and SIGINT, with 2 on unusable input.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from adapters.models.scripted.server import ScriptedServer
from domain.errors import InvalidInput

STOP = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Serve until told to stop."""
    options = _options()
    # Blocked before any thread starts, so that they wait for sigwait, wherever they arrive.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    try:
        with ScriptedServer(
            options.answers, options.bill, port=options.port, required_key=_required_key(options.require_key)
        ) as server:
            print(json.dumps({"base_url": server.base_url}), flush=True)  # noqa: T201 - stdout is this program's data
            signal.sigwait(STOP)
    except (InvalidInput, OSError) as error:
        print(f"scripted: {error}", file=sys.stderr)  # noqa: T201 - the one sentence for a person
        return 2
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m adapters.models.scripted", description=__doc__)
    parser.add_argument("--answers", type=Path, required=True, help="the YAML file to answer from")
    parser.add_argument("--bill", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--require-key", default="", metavar="VARIABLE", help="the variable that holds the API key")
    return parser.parse_args()


def _required_key(variable: str) -> str:
    if variable and not os.environ.get(variable):
        raise InvalidInput(f"--require-key names {variable}, which is not set")
    return os.environ[variable] if variable else ""


if __name__ == "__main__":
    sys.exit(main())
