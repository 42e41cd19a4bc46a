"""What a run finds in its sandbox of the ways out that it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from domain.ports.sandbox import SandboxRun

# Written into the sandbox's own /etc: enough for getpwuid() and for "localhost", nothing of this machine.
ETC = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndev:x:1000:1000:dev:/tmp/home:/bin/sh\n",
    "/etc/group": "root:x:0:\ndev:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
WAYS_FILE = "/etc/ways.cfg"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PROXY_PORT = 3128
_OUTLET_SOCKET = "/run/outlet"
_EGRESS_SOCKET = "/run/egress"
_WAYS = """global
  maxconn 256
  nbthread 1
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
"""
_WAY = """listen {name}
  bind 127.0.0.1:{port}
  server outside unix@{socket}
"""
# How each of the usual tools is told where the certificates are.
_CERTIFICATE_NAMES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
                      "GIT_SSL_CAINFO")  # fmt: skip


def sockets(run: SandboxRun) -> dict[Path, str]:
    """The sockets outside, and their places inside."""
    found = {run.outlet.socket: _OUTLET_SOCKET} if run.outlet else {}
    return found | ({run.egress.socket: _EGRESS_SOCKET} if run.egress else {})


def etc_of(run: SandboxRun, certificates: str) -> dict[str, str]:
    """The files of the run's own /etc, and their content; ``certificates`` are whom it trusts abroad."""
    ways = ""
    if run.outlet:
        ways += _WAY.format(name="outlet", port=run.outlet.port, socket=_OUTLET_SOCKET)
    if run.egress:
        ways += _WAY.format(name="egress", port=PROXY_PORT, socket=_EGRESS_SOCKET)
    bundle = {CERTIFICATES: certificates} if run.egress and certificates else {}
    return ETC | ({WAYS_FILE: _WAYS + ways} if ways else {}) | bundle


def variables(run: SandboxRun) -> Mapping[str, str]:
    """How programs inside find the proxy and the certificates; nothing where nothing can be reached."""
    if not run.egress:
        return {}
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    named = any(host.startswith("localhost:") for host in run.egress.hosts)
    own = "127.0.0.1,::1" if named else "localhost,127.0.0.1,::1"
    values = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": own}
    both = values | {name.lower(): value for name, value in values.items()}
    return both | dict.fromkeys(_CERTIFICATE_NAMES, CERTIFICATES)
