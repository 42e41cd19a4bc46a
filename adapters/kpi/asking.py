"""One request over a real socket, and whose fault it was when no good answer came."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Iterator

import httpx2

from adapters.kpi.orders import CONTENT, REFUSED, RESET, STATUS, TIMEOUT, UNMEASURED
from domain.kpi.probe import Probe

MOST_BODY = 1_000_000
"""Bytes of a body that are read and searched."""

_OURS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.ENOBUFS, errno.ENOMEM}
_HEADERS = {"User-Agent": "mendwork-probe", "Accept-Encoding": "identity", "Connection": "close"}


def client() -> httpx2.AsyncClient:
    """Asks what it is told to and nothing else: no proxy, no redirect, no cookie, no retry.

    A connection per request: an idle one that is kept would hold up a service of a single thread, and one that the
    service closes in the moment of its reuse would look like a failure.
    """
    return httpx2.AsyncClient(
        headers=_HEADERS,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # never used; the default one takes long to load
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        timeout=None,
        trust_env=False,
        follow_redirects=False,
    )


async def ask(client: httpx2.AsyncClient, url: str, probe: Probe) -> str:
    """ "" for a good answer, else the kind of failure. Takes as long as the service likes."""
    try:
        async with client.stream("GET", url.rstrip("/") + probe.path) as response:
            client.cookies.clear()
            if response.status_code != probe.status:
                return STATUS
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) >= MOST_BODY:
                    break
    except (httpx2.TransportError, OSError) as error:
        return fault_of(error)
    return "" if probe.contains.encode() in body else CONTENT


def fault_of(error: BaseException) -> str:
    """ "unmeasured" when the reason lies on our side, else the service's failure."""
    causes = list(_causes(error))
    if any(isinstance(cause, OSError) and cause.errno in _OURS for cause in causes):
        return UNMEASURED
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.PoolTimeout):
        return UNMEASURED
    if isinstance(error, httpx2.TimeoutException) or any(isinstance(cause, TimeoutError) for cause in causes):
        return TIMEOUT
    return REFUSED if isinstance(error, httpx2.ConnectError) else RESET


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that it came from."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
        waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else []
