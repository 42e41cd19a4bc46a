"""``python -m notes``: serve until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence

from notes import __version__
from notes.api import build_router
from notes.config import Config, ConfigError, read_config
from notes.logs import configure_logging
from notes.schema import SchemaTooNew
from notes.store import NoteStore
from notes.web.server import WebServer

log = logging.getLogger("notes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 after a clean stop, 1 when the service cannot start, 2 for wrong usage."""
    _parser().parse_args(arguments)
    try:
        config = read_config(os.environ)
    except ConfigError as error:
        print(f"notes: {error}", file=sys.stderr)
        return 2
    configure_logging(config.log_level)
    try:
        serve(config)
    except (OSError, sqlite3.Error, SchemaTooNew) as error:
        log.error("cannot start", extra={"data": {"reason": str(error)}})
        return 1
    return 0


def serve(config: Config) -> None:
    """Answer requests until a signal arrives, then finish the open ones and return."""
    store = NoteStore(config.database)
    try:
        server = WebServer((config.host, config.port), build_router(store, release=config.release))
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="accept")
        thread.start()
        log.info("listening", extra={"data": {"host": config.host, "port": server.port}})
        stop.wait()
        log.info("stopping")
        server.drain()
        thread.join()
    finally:
        store.close()
    log.info("stopped")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="notes",
        description="Serve notes over HTTP.",
        epilog="Environment: HOST, PORT (0 picks a free one), DATA_DIR, LOG_LEVEL, RELEASE.",
    )
    parser.add_argument("--version", action="version", version=f"notes {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
