"""The proxy that this machine itself has to go through, where it has one."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from domain.errors import InvalidInput

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """``credentials`` is the value of Proxy-Authorization, "" for none; ``spared`` the names that are reached without
    it, as NO_PROXY has them."""

    host: str
    port: int
    credentials: str = field(default="", repr=False)
    spared: str = ""

    def carries(self, name: str, port: int) -> bool:
        """Whether connections to ``name`` go through it: never those to this machine."""
        patterns = [each.strip().lower().lstrip("*").lstrip(".") for each in self.spared.split(",")]
        ends = (name, f"{name}:{port}")
        spared = any(end == each or end.endswith(f".{each}") for each in patterns if each for end in ends)
        return not (spared or name == "localhost" or self.spared.strip() == "*")

    async def tunnel(self, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to ``name``, which this proxy resolves itself. Raises OSError, or as StreamReader does."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=_CHUNK)
        lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
        lines += [f"Proxy-Authorization: {self.credentials}"] if self.credentials else []
        opened = False
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode())
            opened = (await reader.readuntil(b"\r\n\r\n")).split(None, 2)[1:2] == [b"200"]
        finally:
            if not opened:
                writer.transport.abort()
        if not opened:
            raise ConnectionRefusedError("the proxy of this machine does not let it through")
        return reader, writer


def upstream_of(environment: Mapping[str, str]) -> Upstream | None:
    """HTTPS_PROXY (or ALL_PROXY) and NO_PROXY, in either case. Raises InvalidInput for a URL that is none of HTTP's,
    without showing it: it may hold a password."""
    lower = {name.lower(): value for name, value in environment.items() if value}
    url = lower.get("https_proxy") or lower.get("all_proxy") or ""
    if not url:
        return None
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme != "http" or not host:
        raise InvalidInput("HTTPS_PROXY must be http://host:port: a set-up is led through it with CONNECT")
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    token = base64.b64encode(user.encode()).decode() if parts.username else ""
    credentials = f"Basic {token}" if token else ""
    return Upstream(host=host, port=port or 80, credentials=credentials, spared=lower.get("no_proxy", ""))
