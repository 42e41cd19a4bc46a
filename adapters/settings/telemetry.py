"""``[telemetry]``: what each worker process shows of itself, and where its traces go."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator

from adapters.settings.section import Section

_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")
_LAST_PORT = 65_535 - 4  # the classes of workers take the ports after it, one each


def _address(text: str) -> str:
    found = _LISTEN.fullmatch(text)
    if text and (found is None or int(found["port"]) > _LAST_PORT):
        raise ValueError(f'has to be "HOST:PORT" with a port up to {_LAST_PORT}, 0 for any free one, or "" for none')
    return text


def _collector(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if text and not usable:
        raise ValueError('has to be the address of a collector, as in "http://127.0.0.1:4318"')
    if text and (parts.username or parts.password):
        raise ValueError("must not hold a password: set OTEL_EXPORTER_OTLP_HEADERS where the workers run")
    return text


class TelemetrySettings(Section):
    """``listen`` is where a worker serves /livez, /readyz and /metrics: port 0 is any free one, another port is that of
    the saga worker, and the classes workspace, model, sandbox and deploy take the next ones; "" serves nothing.

    ``logs`` is the form of a worker's log. ``otlp`` is the collector that traces are sent to over HTTP; "" leaves it to
    OTEL_EXPORTER_OTLP_ENDPOINT, and without that nothing is traced.
    """

    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:0"
    logs: Literal["text", "json"] = "text"
    otlp: Annotated[str, AfterValidator(_collector)] = ""

    def listens(self, place: int) -> tuple[str, int] | None:
        """Host and port of the worker class number ``place``, counted from 0; None where nothing is served."""
        if not self.listen:
            return None
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port) and int(port) + place
