"""``[encryption]`` and ``[codec]``: the keys of what Temporal stores, and the server that decodes it for UI and CLI."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from adapters.settings.section import Section, names

_KEY = re.compile(r"[^\0]*\.key")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")


def _key_file(name: str) -> str:
    if not _KEY.fullmatch(name):
        raise ValueError("a key has no place here: name its file, which ends in .key")
    return name


def _origin(name: str) -> str:
    if not _ORIGIN.fullmatch(name):
        raise ValueError("has to be the origin of a web UI, as in http://localhost:8233, without a path")
    return name


class EncryptionSettings(Section):
    """``keys`` are files, from the folder of ``mendwork.toml``: the first encrypts, each decrypts. None: no payload is
    encrypted."""

    keys: Annotated[tuple[Annotated[str, AfterValidator(_key_file)], ...], BeforeValidator(names)] = ()


class CodecSettings(Section):
    """``mendwork codec serve``. ``token_file`` holds the token that it asks for, ``origins`` are the web UIs whose
    pages may ask."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8234, ge=0, le=65535)
    origins: Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(names)] = ()
    token_file: str = Field(default="", repr=False)  # somebody will write the token itself
