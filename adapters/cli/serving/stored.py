"""Where blobs are, as the configuration has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.settings import Settings
from domain.errors import BlobMissing, CredentialsRefused

if TYPE_CHECKING:
    from adapters.blobs.bucket import Bucket
    from adapters.telemetry.health import Check
    from domain.ports.blobs import KeptBlobs

_NONE = "0" * 64


def blobs_of(settings: Settings) -> KeptBlobs:
    """Below the state folder, the hosts' shared one, or in a bucket; nothing is connected to yet.

    Raises CredentialsRefused for a bucket without a key.
    """
    from adapters.blobs import open_blobs

    return open_blobs(_bucket(settings) if settings.blobs.url else settings.common)


def blobs_check(settings: Settings) -> dict[str, Check]:
    """One that is not there is looked for."""

    async def look() -> None:
        try:
            await blobs_of(settings).get(_NONE)
        except BlobMissing:
            """It can be told."""

    return {"blobs": look}


def _bucket(settings: Settings) -> Bucket:
    from adapters.blobs.bucket import KEYS, Bucket

    given = settings.blobs
    key = given.access_key.get_secret_value(), given.secret_key.get_secret_value()
    if not key[0]:
        raise CredentialsRefused(f"{given.url} needs a key: set {' and '.join(KEYS)}, or give them as files of secrets")
    name, prefix = given.bucket
    return Bucket(
        name=name,
        prefix=prefix,
        endpoint=given.endpoint,
        region=given.region,
        access_key=key[0],
        secret_key=key[1],
    )
