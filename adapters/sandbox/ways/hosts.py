"""Which hosts a run may reach: by name before anything is resolved, by address before anything is connected."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?")
HTTPS = 443
# Everything that is this machine, a network of its owner's, or no host at all. Addresses for documentation are let
# pass: they reach nobody, or whom the machine's owner has put there.
_CLOSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10"),
        "ff00::/8",
    )
)


class Hosts:
    """``names`` are "name" (only port 443, only inside TLS) or "name:port"."""

    def __init__(self, names: Collection[str]) -> None:
        self._bare = frozenset(name for name in names if ":" not in name)
        self._exact = frozenset(name for name in names if ":" in name)

    def allows(self, name: str, port: int, *, plain: bool) -> bool:
        """Whether ``name`` may be asked for on ``port``; ``plain`` is HTTP that everybody on the way can read."""
        exact = f"{name}:{port}" in self._exact
        return exact or (not plain and port == HTTPS and name in self._bare)

    def opens(self, name: str, port: int, address: str) -> bool:
        """Whether ``name`` may lead to ``address``: to one of this machine or a private network only where the list has
        the name with its port."""
        return f"{name}:{port}" in self._exact or not is_closed(address)


def parsed(authority: str, *, default: int | None = None) -> tuple[str, int]:
    """Name in lower case and port of "name:port". Raises ValueError for an address, or what is no name of a host."""
    name, separator, digits = authority.lower().partition(":")
    name = name.removesuffix(".")
    if separator and not (digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise ValueError("no port")
    port = int(digits) if separator else default
    if port is None or not 1 <= port <= 65_535:
        raise ValueError("no port")
    if not _NAME.fullmatch(name) or _is_number(name.rpartition(".")[2]):
        raise ValueError("no name of a host")
    return name, port


def is_closed(address: str) -> bool:
    """Whether ``address`` is this machine's, a private network's, or leads there by another spelling."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return any(found in network for network in _CLOSED)


def _is_number(label: str) -> bool:
    """The resolver takes such a last part for an address: 127.1, 2130706433, 0x7f.1."""
    return label.isdigit() or re.fullmatch(r"0x[0-9a-f]*", label) is not None
