"""The system's certificates, found also when the environment says nothing."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)


def certificate_file(environment: Mapping[str, str]) -> Path | None:
    """SSL_CERT_FILE where it is set, else the system's bundle; None when there is none."""
    named = environment.get("SSL_CERT_FILE")
    places = (named,) if named else (*_PLACES, ssl.get_default_verify_paths().openssl_cafile)
    return next((Path(place) for place in places if Path(place).is_file()), None)
