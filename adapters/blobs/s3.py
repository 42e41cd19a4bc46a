"""Blobs as objects of an S3-compatible store: ``prefix/ab/cdef…``, each written by one request, so that its name stands
for all its bytes or none.

An object's time is when its blob was last put. A put of what is new is one request; only a put of what is there may
meet its removal. Whoever removes leaves a mark, looks once more, removes, and takes the mark away. Whoever puts looks
after it: at the mark first, then at the object. So either the remover sees that it was put again, or the writer sees
the mark or that nothing is there, and neither is told what does not hold.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from adapters.blobs.bucket import Bucket
from adapters.blobs.connection import Connection, connection_to
from adapters.blobs.digests import checked_content, checked_digest, digest_of
from adapters.blobs.refusals import MISSING, code_of, is_hung_up, is_taken, translated
from domain.errors import BlobMissing, StoreUnavailable
from domain.ports.blobs import StoredBlob

PAGE = 1_000
MARKS = "removing"
STALE_SECONDS = 600.0  # no removal takes so long: its process died, and its mark says nothing any more
LARGE_BYTES = 1 << 20
_AGAIN = 3
_NAME = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})")


class S3Blobs:
    """``domain.ports.blobs.KeptBlobs`` in a bucket. Any number of hosts may share it; it has to know conditional
    writes (``If-None-Match``). All of its errors are those of ``refusals``."""

    def __init__(self, bucket: Bucket, connection: Connection, *, page: int = PAGE) -> None:
        self._bucket = bucket
        self._connection = connection
        self._page = page
        self._prefix = f"{bucket.prefix}/" if bucket.prefix else ""

    async def put(self, content: bytes) -> str:
        return await self._connection.run(lambda client: self._put(_Objects(client, self._bucket), content))

    async def get(self, digest: str) -> bytes:
        checked_digest(digest)
        return await self._connection.run(lambda client: self._get(_Objects(client, self._bucket), digest))

    async def list(self) -> Sequence[StoredBlob]:
        return await self._connection.run(lambda client: self._list(_Objects(client, self._bucket)))

    async def remove(self, digest: str, *, before: int) -> int:
        checked_digest(digest)
        return await self._connection.run(lambda client: self._remove(_Objects(client, self._bucket), digest, before))

    def _put(self, objects: _Objects, content: bytes) -> str:
        digest = digest_of(content)
        key, mark = self._key(digest), self._mark(digest)
        with translated(f"blob {digest} cannot be written", self._bucket):
            # A store that refuses in the middle of a large body may hang up before its answer is read: look first.
            perhaps_new = len(content) < LARGE_BYTES or objects.look(key) is None
            if perhaps_new and objects.put(key, content, digest=digest, new=True):
                return digest
            for _ in range(_AGAIN):
                objects.put(key, content, digest=digest)
                marked = objects.look(mark)
                if marked is not None and marked.age < STALE_SECONDS:
                    break
                if objects.look(key) is not None:
                    return digest
        raise StoreUnavailable(f"blob {digest} cannot be written: it is just being removed", retry_after=1.0)

    def _get(self, objects: _Objects, digest: str) -> bytes:
        with translated(f"blob {digest} cannot be read", self._bucket):
            content = objects.get(self._key(digest))
        if content is None:
            raise BlobMissing(f"there is no blob {digest}")
        return checked_content(digest, content)

    def _list(self, objects: _Objects) -> Sequence[StoredBlob]:
        found = []
        with translated("the blobs cannot be listed", self._bucket):
            for key, size, written in objects.list(self._prefix, page=self._page):
                if name := _NAME.fullmatch(key.removeprefix(self._prefix)):
                    found.append(StoredBlob(digest=name[1] + name[2], size=size, written=written))
        return sorted(found, key=lambda blob: blob.digest)

    def _remove(self, objects: _Objects, digest: str, before: int) -> int:
        key, mark = self._key(digest), self._mark(digest)
        with translated(f"blob {digest} cannot be removed", self._bucket):
            found = objects.look(key)
            if found is None or found.written >= before or not _marked(objects, mark):
                return 0
            try:
                found = objects.look(key)
                if found is None or found.written >= before:
                    return 0
                objects.delete(key)
                return found.size
            finally:
                with suppress(Exception):  # it is told why the removal failed, and the mark grows stale
                    objects.delete(mark)

    def _key(self, digest: str) -> str:
        return f"{self._prefix}{digest[:2]}/{digest[2:]}"

    def _mark(self, digest: str) -> str:
        return f"{self._prefix}{MARKS}/{digest}"


def open_s3(bucket: Bucket) -> S3Blobs:
    """The blobs in ``bucket``, over the process's one connection to it."""
    return S3Blobs(bucket, connection_to(bucket))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """``written`` is ms since 1970 and ``age`` seconds, both by the store's own clock."""

    size: int
    written: int
    age: float


class _Objects:
    """The requests; whatever the client raises comes out of them as it is."""

    def __init__(self, client: Any, bucket: Bucket) -> None:
        self._client = client
        self._bucket = bucket.name

    def put(self, key: str, content: bytes, *, digest: str, new: bool = False) -> bool:
        """The store checks the bytes that came. ``new``: only where nothing is; False where something was."""
        checksum = b64encode(bytes.fromhex(digest)).decode()
        condition = {"IfNoneMatch": "*"} if new else {}
        try:
            self._ask("put_object", Key=key, Body=content, ChecksumSHA256=checksum, **condition)
        except Exception as error:
            if new and is_taken(error):
                return False
            raise
        return True

    def get(self, key: str) -> bytes | None:
        try:
            answer = self._ask("get_object", Key=key)
        except self._client.exceptions.NoSuchKey:
            return None
        with closing(answer["Body"]) as body:
            content: bytes = body.read()
        return content

    def look(self, key: str) -> _Seen | None:
        try:
            answer = self._ask("head_object", Key=key)
        except self._client.exceptions.ClientError as error:
            if code_of(error) in MISSING:
                return None
            raise
        changed, told = answer["LastModified"], answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(told) if told else changed
        return _Seen(size=answer["ContentLength"], written=_ms(changed), age=(now - changed).total_seconds())

    def list(self, prefix: str, *, page: int) -> Iterator[tuple[str, int, int]]:
        """Key, bytes and ms since 1970 of each."""
        further: dict[str, str] | None = {}
        while further is not None:
            answer = self._ask("list_objects_v2", Prefix=prefix, MaxKeys=page, **further)
            for entry in answer.get("Contents", ()):
                yield entry["Key"], entry["Size"], _ms(entry["LastModified"])
            further = {"ContinuationToken": answer["NextContinuationToken"]} if answer.get("IsTruncated") else None

    def delete(self, key: str) -> None:
        self._ask("delete_object", Key=key)

    def _ask(self, what: str, **request: Any) -> Any:
        """Twice where the store hung up: it does so with connections that were idle for long. All of our requests may
        be made twice."""
        ask = getattr(self._client, what)
        try:
            return ask(Bucket=self._bucket, **request)
        except Exception as error:
            if not is_hung_up(error):
                raise
        return ask(Bucket=self._bucket, **request)


def _marked(objects: _Objects, mark: str) -> bool:
    """Whether the removal is ours: False while another one is at it."""
    if objects.put(mark, b"", digest=digest_of(b""), new=True):
        return True
    there = objects.look(mark)
    if there is not None and there.age < STALE_SECONDS:
        return False
    return objects.put(mark, b"", digest=digest_of(b""))


def _ms(when: datetime) -> int:
    return int(when.timestamp() * 1000)
