"""The port ``KeptEnvironments`` on a folder: one folder an environment, whole from the moment that it has its name."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.environments.locks import held
from adapters.environments.trees import remove_tree, size_of
from domain.errors import InvalidInput, ResourceShort
from domain.ports.kept.environments import KeptEnvironment, UsedEnvironment

_KEY = re.compile(r"[0-9a-f]{64}")
_TREE, _RECORD = "tree", "record.json"
_MAKING, _GOING = "making-", "going-"


class FileEnvironments:
    """``<folder>/<key>/tree`` is the environment, ``record.json`` beside it says what it is; the time of that file is
    when it was last used. Whoever uses, makes or removes one holds a lock on its folder, which ends with its process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def using(self, key: str) -> AsyncIterator[UsedEnvironment | None]:
        """See the port."""
        place = self._folder / _checked(key)
        with held(place, shared=True) as ours:
            if not ours:
                yield None
                return
            os.utime(place / _RECORD)
            yield UsedEnvironment(kept=_read(place), folder=place / _TREE)

    @asynccontextmanager
    async def making(self, key: str, *, project: str) -> AsyncIterator[Path]:
        """See the port."""
        _checked(key)
        try:
            await asyncio.to_thread(self._sweep)
            place = self._folder / f"{_MAKING}{key}-{secrets.token_hex(4)}"
            place.mkdir()
            with held(place, shared=True):  # enough against those who sweep, and others may use it at once
                try:
                    (place / _TREE).mkdir()
                    place.chmod(0o755)
                    (place / _TREE).chmod(0o755)
                    yield place / _TREE
                    await asyncio.to_thread(self._keep, place, key, project)
                finally:
                    await asyncio.to_thread(remove_tree, place)
        except OSError as error:
            raise ResourceShort(f"the environment cannot be kept: {error}") from error

    async def list(self) -> Sequence[KeptEnvironment]:
        """See the port."""
        return await asyncio.to_thread(self._list)

    async def remove(self, key: str) -> bool:
        """See the port."""
        return await asyncio.to_thread(self._remove, self._folder / _checked(key))

    def _list(self) -> Sequence[KeptEnvironment]:
        found = []
        for place in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):  # removed while we look
                if _KEY.fullmatch(place.name):
                    found.append(_read(place))
        return found

    def _keep(self, place: Path, key: str, project: str) -> None:
        record = {"project": project, "bytes": size_of(place / _TREE)}
        with (place / _RECORD).open("x", encoding="utf-8") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.sync()  # before the name: a whole environment is whole after a power cut too
        try:
            place.rename(self._folder / key)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # or another maker was first

    def _remove(self, place: Path) -> bool:
        with held(place, shared=False) as ours:
            if ours:
                gone = self._folder / f"{_GOING}{secrets.token_hex(8)}"
                place.rename(gone)
                remove_tree(gone)
        return not place.exists()

    def _sweep(self) -> None:
        """What killed makers and removers left: nobody holds it any more."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for place in self._folder.iterdir():
            if place.name.startswith((_MAKING, _GOING)):
                with held(place, shared=False) as ours:
                    if ours:
                        remove_tree(place)


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"{key[:80]!r} is no key of an environment: 64 hex digits")
    return key


def _read(place: Path) -> KeptEnvironment:
    record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
    used_at = (place / _RECORD).stat().st_mtime
    return KeptEnvironment(key=place.name, project=record["project"], bytes=record["bytes"], used_at=used_at)
