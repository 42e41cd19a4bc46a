"""A scratch world: a folder with a configuration, a store, blobs and repositories of its own. It holds what the phase
is given as a value, what was answered, and nothing else of the original, which is only read."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.blobs import open_blobs
from adapters.cli.replay.record import Part
from adapters.cli.replay.repositories import Origins
from adapters.cli.replay.settling import FILE, settled
from adapters.cli.replay.toml import written
from adapters.cli.serving.stored import blobs_of
from adapters.git.mirror import Mirror
from adapters.settings import Settings
from domain.errors import BlobMissing, InvalidInput

if TYPE_CHECKING:
    from domain.ports.blobs import Blobs
    from domain.ports.store import Event

NOWHERE = "http://127.0.0.1:9/v1"
"""Where nothing answers: what every model's address is, unless models are called."""
FOLDER, KEPT = "replay", "kept"
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_ANSWERS = ("answer", "value")
_BEGUN = ("base", "baseline", "spec", "plan", "report", "change")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """``root`` is the folder; ``original`` the configuration that the build was made with."""

    root: Path
    original: Settings

    @property
    def state(self) -> Path:
        """Its own state folder."""
        return self.root / ".mendwork"

    def settings(self, part: Part, *, address: str, live: bool) -> Settings:
        """The original's for one project without a target, on a server and a repository of the world's own."""
        elsewhere = {"root", "store", "store_password", "shared", "blobs", "temporal"}
        raw = self.original.model_dump(mode="json", exclude=elsewhere)
        project = raw["projects"].get(part.project)
        if project is None:
            raise InvalidInput(f"the project {part.project} of {part.build} is not in mendwork.toml any more")
        folders = [str((self.original.root / folder).resolve()) for folder in project["toolchain"]]
        project |= {"repository": "repository.git", "delivery": None, "toolchain": folders}
        project["budget"] = {name: "none" if value is None else value for name, value in project["budget"].items()}
        for model in {} if live else raw["models"].values():
            model |= {"base_url": NOWHERE, "api_key_env": ""}
        raw["encryption"]["keys"] = [str(file.resolve()) for file in self.original.key_files]
        raw |= {"projects": {part.project: project}, "temporal": {"address": address}}
        raw["timeouts"]["sweep"] = 86_400.0
        (self.root / "mendwork.toml").write_text(written(raw), encoding="utf-8")
        from adapters.settings import load_settings

        return load_settings(start=self.root, environment={})

    async def fill(self, part: Part, state: Mapping[str, Any], *, live: bool) -> str:
        """Repositories, blobs, and what the sandbox's worker is told. ``state`` is what is carried into the phase, {}
        for intake. Returns the state's digest. Raises BlobMissing, DigestMismatch, RepositoryRefused."""
        self.state.mkdir(mode=0o700)
        mirrors = Mirror(folder=self.original.common / "mirrors", project=part.project)
        origins = Origins(source=mirrors, state=self.state)
        branch = self.original.projects[part.project].branch
        await origins.repository(self.root / "repository.git", branch=branch, commit=part.target())
        if part.entry is not None:
            await origins.mirror(part.commits())
        mine, theirs = open_blobs(self.state), blobs_of(self.original)
        content = json.dumps(state, sort_keys=True, separators=(",", ":")).encode()
        await _copy(theirs, mine, needed=_named(part), content=content)
        reports = await _settled(part, theirs, mine)
        (self.root / FILE).write_text(json.dumps({"reports": reports, "closed": not live}), encoding="utf-8")
        return await mine.put(content) if state else ""


@contextlib.contextmanager
def scratch(original: Settings, *, keep: bool) -> Iterator[World]:
    """A new world, gone at the end unless it is to be kept. What killed replays left is removed first."""
    folder = original.state / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(folder)
    root = Path(tempfile.mkdtemp(dir=folder))
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield World(root=root, original=original)
        finally:
            if keep:
                (root / KEPT).touch()
            else:
                shutil.rmtree(root, ignore_errors=True)
                with contextlib.suppress(OSError):  # another replay is in it
                    folder.rmdir()


def entry_of(part: Part, state: str, *, fresh: bool) -> Event | None:
    """The row of the snapshot for the scratch store; ``fresh``: as if nothing had been spent."""
    if part.entry is None:
        return None
    spent = {"spent": 0, "calls": 0} if fresh else {}
    return replace(part.entry, data={**part.entry.data, "state": state, **spent})


async def _settled(part: Part, theirs: Blobs, mine: Blobs) -> dict[str, str]:
    """The recorded reports by what they are when times are left out of them."""
    reports: dict[str, str] = {}
    for digest in {str(row.data["report"]) for row in part.rows if row.data.get("report")}:
        with contextlib.suppress(BlobMissing):  # then what is seen now stays as it is
            content = await theirs.get(digest)
            reports[settled(content)] = await mine.put(content)
    return reports


def _named(part: Part) -> Iterable[str]:
    """The blobs that the record names: what was to be built, what tasks began with, and what was answered."""
    yield part.spec
    for row in part.rows:
        names = _ANSWERS if row.kind == "call.answered" else _BEGUN if row.kind == "task.started" else ()
        yield from (str(row.data.get(name, "")) for name in names)


async def _copy(theirs: Blobs, mine: Blobs, *, needed: Iterable[str], content: bytes) -> None:
    """The ``needed`` blobs, which have to be there and whole, and every blob that they or ``content`` name."""
    asked = {digest for digest in needed if _DIGEST.fullmatch(digest.encode())}
    for digest in asked:
        await theirs.get(digest)
    waiting, seen = [*asked, *_digests(content)], set[str]()
    while waiting:
        digest = waiting.pop()
        if digest in seen:
            continue
        seen.add(digest)
        with contextlib.suppress(BlobMissing):  # what looks like a digest is the name of a tree, a lock file's hash, …
            found = await theirs.get(digest)
            await mine.put(found)
            waiting += _digests(found)


def _digests(content: bytes) -> list[str]:
    return [match.decode() for match in dict.fromkeys(_DIGEST.findall(content))]


def _sweep(folder: Path) -> None:
    """A killed replay's lock is free."""
    for left in folder.iterdir():
        if not left.is_dir() or (left / KEPT).exists():
            continue
        with contextlib.suppress(OSError), (left / "lock").open("r+") as lock:  # it is in use, or just being made
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
