"""``[blobs]``: where prompts, answers, plans and logs lie, when not below the state folder."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from adapters.settings.section import BadKey, Section

SECRETS = ("access_key", "secret_key")
"""Never in ``mendwork.toml``."""
_BUCKET = re.compile(r"s3://(?P<name>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)/?")
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")


def _bucket(url: str) -> str:
    if url and not _BUCKET.fullmatch(url):
        raise ValueError('has to be a bucket, as in "s3://mendwork-blobs/production", or "" for the state folder')
    return url


def _server(address: str) -> str:
    if address and not _ENDPOINT.fullmatch(address):
        raise ValueError('has to be the address of a server without a path and a login, as in "https://s3.example.org"')
    return address


class BlobSettings(Section):
    """``url`` "" is the state folder, "s3://BUCKET/PREFIX" objects of a store that speaks S3: at ``endpoint``, or with
    "" Amazon's own in ``region``.

    ``access_key`` and ``secret_key`` come from MENDWORK_BLOBS__ACCESS_KEY and MENDWORK_BLOBS__SECRET_KEY, of the
    environment or the folder of secrets.
    """

    url: Annotated[str, AfterValidator(_bucket)] = ""
    endpoint: Annotated[str, AfterValidator(_server)] = ""
    region: str = Field(default="us-east-1", pattern=r"^[a-z0-9-]{1,40}$")
    access_key: SecretStr = SecretStr("")
    secret_key: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.endpoint and not self.url:
            raise BadKey("url", "url is missing: endpoint is the server of a bucket")
        if bool(self.access_key.get_secret_value()) != bool(self.secret_key.get_secret_value()):
            raise BadKey("secret_key", "access_key and secret_key belong together, and one is missing")
        return self

    @property
    def bucket(self) -> tuple[str, str]:
        """The bucket's name and the prefix in it, without a slash at its ends; "" and "" where there is none."""
        found = _BUCKET.fullmatch(self.url)
        return (found["name"], found["prefix"].strip("/")) if found else ("", "")
