"""Keys and tokens, each in a file of its own that nobody else may read. Neither is ever in a text that we print."""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from domain.errors import InvalidInput

SUFFIX = ".key"
KEY_BYTES = 32
SHORTEST_TOKEN = 16
_MOST_BYTES = 4096
_SHOWN = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")))
"""What a sandbox shows of this machine to code that a model wrote."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An AES-256 key. ``id`` is its file's name without ``.key``, and stands beside every payload it encrypted."""

    id: str
    secret: bytes = field(repr=False)


def load_keys(files: Sequence[Path]) -> tuple[Key, ...]:
    """The keys of ``files``, in order. Raises InvalidInput with the file's name for one that cannot be used."""
    keys = tuple(_key(file) for file in files)
    ids = [key.id for key in keys]
    doubled = [each for each in ids if ids.count(each) > 1]
    if doubled:
        raise InvalidInput(f"[encryption].keys: two files have the name {doubled[0]}{SUFFIX}, which is the key's id")
    return keys


def new_key(file: Path) -> str:
    """Write a new key into ``file``, which must not exist, for its owner alone; returns its id.

    Raises InvalidInput.
    """
    name = _id_of(file)
    _written(file, base64.b64encode(secrets.token_bytes(KEY_BYTES)))
    return name


def new_token(file: Path) -> None:
    """As ``new_key``, for a token of the codec server."""
    _written(file, secrets.token_urlsafe(KEY_BYTES).encode())


def read_token(file: Path) -> bytes:
    """The token in ``file``. Raises InvalidInput, which names neither the file nor its content: somebody may have
    written the token itself where the file's name belongs."""
    token = _read(file, named="[codec].token_file: the file")
    if len(token) < SHORTEST_TOKEN or not all(33 <= each < 127 for each in token):
        raise InvalidInput(
            f"[codec].token_file: the file has to hold one word of at least {SHORTEST_TOKEN} plain characters; "
            "`mendwork codec token FILE` writes one"
        )
    return token


def _key(file: Path) -> Key:
    name = _id_of(file)
    if any(file.resolve().is_relative_to(folder.resolve()) for folder in _SHOWN):
        raise InvalidInput(
            f"[encryption].keys: {file.name} lies where sandboxes see it; no folder of the system is a place"
        )
    try:
        secret = base64.b64decode(_read(file, named=f"[encryption].keys: {file.name}"), altchars=b"-_", validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise InvalidInput(
            f"[encryption].keys: {file.name} has to hold {KEY_BYTES} random bytes in base64; "
            "`mendwork codec key FILE` writes them"
        )
    return Key(id=name, secret=secret)


def _id_of(file: Path) -> str:
    """The name that a key gets from its file. The suffix keeps a key that was written in the place of a file's name
    from being taken for one, and from being told in an error."""
    if file.suffix != SUFFIX or not _ID.fullmatch(file.stem):
        raise InvalidInput(
            f"[encryption].keys: a key's file is named ID{SUFFIX}, the id of letters, digits, '.', '_' and '-'"
        )
    return file.stem


def _read(file: Path, *, named: str) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{named} cannot be read: {getattr(error, 'strerror', '') or 'no file has that name'}"
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{named} is no file")
        if found.st_mode & 0o077:
            raise InvalidInput(f"{named} may be used by others (mode {stat.S_IMODE(found.st_mode):04o}): chmod 600 it")
        return os.read(descriptor, _MOST_BYTES).strip()
    finally:
        os.close(descriptor)


def _written(file: Path, content: bytes) -> None:
    """At once or not at all: a half-written key would be found out only when it is too late."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as opened:
                opened.write(content + b"\n")
                opened.flush()
                os.fsync(descriptor)
            os.link(scratch, file)  # unlike a rename, this never replaces a key
        finally:
            with suppress(OSError):
                scratch.unlink()
    except FileExistsError:
        raise InvalidInput(f"{file} is there already: a key is never written over") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from None
