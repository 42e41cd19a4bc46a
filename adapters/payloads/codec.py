"""Payloads as Temporal stores them: encrypted by AES-256-GCM, with the key's id beside the ciphertext."""

from __future__ import annotations

import os
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from adapters.payloads.keys import Key
from domain.errors import DigestMismatch, KeyMissing

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"
NONCE_BYTES = 12
_VERSION = b"mendwork payload 1"


class EncryptionCodec(PayloadCodec):
    """The first of ``keys`` encrypts, each decrypts; without any, payloads are written as they are.

    What is bound to a ciphertext, and proven with it: the key's id and the ``namespace``, so that a payload cannot be
    carried into another one. Nothing narrower can be: a codec server is told the namespace and no more. Payloads that
    are not encrypted pass: those of before, and signals that people write by hand.
    """

    def __init__(self, keys: Sequence[Key], *, namespace: str) -> None:
        self._namespace = namespace
        self._first = keys[0].id if keys else ""
        self._ciphers = {}
        if keys:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # lazy: most installations have no keys

            self._ciphers = {key.id: AESGCM(key.secret) for key in keys}

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See PayloadCodec; one for one."""
        return self.sealed(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See PayloadCodec. Raises KeyMissing, DigestMismatch."""
        return self.opened(payloads)

    def sealed(self, payloads: Sequence[Payload]) -> list[Payload]:
        """All of them encrypted, whatever they hold."""
        return [self._sealed(each) for each in payloads] if self._first else list(payloads)

    def opened(self, payloads: Sequence[Payload]) -> list[Payload]:
        """All of them readable. Raises KeyMissing, DigestMismatch."""
        return [self._opened(each) if each.metadata.get("encoding") == ENCODING else each for each in payloads]

    def _sealed(self, payload: Payload) -> Payload:
        nonce = os.urandom(NONCE_BYTES)
        plain = payload.SerializeToString()
        sealed = self._ciphers[self._first].encrypt(nonce, plain, self._bound(self._first))
        return Payload(metadata={"encoding": ENCODING, KEY_ID: self._first.encode()}, data=nonce + sealed)

    def _opened(self, payload: Payload) -> Payload:
        name = payload.metadata.get(KEY_ID, b"").decode("ascii", "backslashreplace")[:64]
        cipher = self._ciphers.get(name)
        if cipher is None:
            known = ", ".join(self._ciphers) or "none"
            raise KeyMissing(f"a payload is encrypted with key {name!r}, which [encryption].keys lacks; known: {known}")
        from cryptography.exceptions import InvalidTag

        try:
            plain = cipher.decrypt(payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:], self._bound(name))
        except (InvalidTag, ValueError):  # a ValueError: too short for what it should hold
            raise DigestMismatch(
                f"a payload of key {name!r} does not decrypt in namespace {self._namespace!r}: it was changed, comes "
                "from another namespace, or the key's file holds another key"
            ) from None
        return Payload.FromString(plain)

    def _bound(self, name: str) -> bytes:
        return b"\0".join((_VERSION, name.encode(), self._namespace.encode()))
