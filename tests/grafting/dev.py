"""``mendwork dev`` with forked workers: ``python -m tests.grafting.dev ADDRESS KIND``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from adapters.cli.dev import DevOptions, run_dev
from adapters.settings import load_settings
from tests.grafting import LAUNCH

if __name__ == "__main__":
    settings = load_settings(start=Path.cwd(), environment=os.environ)
    options = DevOptions(worker=(sys.executable, "-I", "-S", str(LAUNCH), *sys.argv[1:]))
    sys.exit(asyncio.run(run_dev(settings, environment=os.environ, options=options)))
