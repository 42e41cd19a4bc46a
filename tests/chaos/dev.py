"""``mendwork dev`` with workers that can be told to die: ``python -m tests.chaos.dev``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from adapters.cli.dev import DevOptions, run_dev
from adapters.settings import load_settings

if __name__ == "__main__":
    settings = load_settings(start=Path.cwd(), environment=os.environ)
    options = DevOptions(worker=(sys.executable, "-P", "-m", "tests.chaos.mortal_worker"))
    sys.exit(asyncio.run(run_dev(settings, environment=os.environ, options=options)))
