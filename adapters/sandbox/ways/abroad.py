"""How this machine reaches hosts of other networks, for the runs that may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox.ways.upstream import Upstream, upstream_of

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Abroad:
    """``certificates`` is the bundle of those that this machine trusts (None: the system's), ``upstream`` the proxy
    that it has to go through."""

    certificates: Path | None = None
    upstream: Upstream | None = None

    def trusted(self) -> str:
        """The bundle's content; "" where there is none. Raises OSError for one that is named and cannot be read."""
        if self.certificates:
            return self.certificates.read_text(errors="replace")
        found = next((path for path in map(Path, _BUNDLES) if path.is_file()), None)
        return found.read_text(errors="replace") if found else ""


def abroad(environment: Mapping[str, str]) -> Abroad:
    """From a process's environment: SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY. Raises InvalidInput."""
    named = environment.get("SSL_CERT_FILE", "")
    return Abroad(certificates=Path(named) if named else None, upstream=upstream_of(environment))
