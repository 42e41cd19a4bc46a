"""A bucket, and the key to it. The key is never in a text that we print."""

from __future__ import annotations

from dataclasses import dataclass, field

KEYS = ("MENDWORK_BLOBS__ACCESS_KEY", "MENDWORK_BLOBS__SECRET_KEY")
"""Where people give the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Objects below ``prefix`` of the bucket ``name``. ``endpoint`` "" is Amazon's own for the ``region``."""

    name: str
    prefix: str = ""
    endpoint: str = ""
    region: str = "us-east-1"
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @property
    def shown(self) -> str:
        """For people."""
        return f"s3://{self.name}" + (f" at {self.endpoint}" if self.endpoint else "")
