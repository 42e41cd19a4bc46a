"""Where recorded histories lie: a folder for each release, ``histories/<version>/``, and one file of digests.

A release is made by writing its folder's digests into ``SHA256SUMS`` (``sha256sum -c`` reads it too). From then on the
folder is what builds in the field have done: it is never written again, only replayed.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+")


class Released(Exception):
    """What was asked for would change a release."""


def running_version() -> str:
    """The version that pyproject.toml gives to the code as it is."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return version


def order(version: str) -> tuple[int, ...]:
    """For sorting: 0.10.0 comes after 0.9.0."""
    return tuple(int(part) for part in version.split("."))


def kind_of(path: Path) -> str:
    """The workflow type whose history the file holds."""
    first = json.loads(path.read_text())["events"][0]
    kind: str = first["workflowExecutionStartedEventAttributes"]["workflowType"]["name"]
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The folders below ``root``."""

    root: Path

    @property
    def sums(self) -> Path:
        """The digests of every released history."""
        return self.root / "SHA256SUMS"

    def versions(self) -> list[str]:
        """Those that have a folder, the oldest first."""
        names = [path.name for path in self.root.iterdir() if path.is_dir() and VERSION.fullmatch(path.name)]
        return sorted(names, key=order)

    def histories(self, version: str) -> list[Path]:
        """The files of one version, by name."""
        return sorted((self.root / version).glob("*.json"))

    def released(self) -> Mapping[str, str]:
        """The digest of each released history by its path, as in "0.1.0/build-notes-plain.json"."""
        lines = self.sums.read_text().splitlines() if self.sums.exists() else []
        return {path: digest for digest, _, path in (line.partition("  ") for line in lines)}

    def is_released(self, version: str) -> bool:
        """Whether it may never change again."""
        return any(path.startswith(f"{version}/") for path in self.released())

    def refuse_released(self, version: str) -> None:
        """Raise Released for a version whose folder may not be written any more."""
        if self.is_released(version):
            raise Released(
                f"{version} is released, and its histories stay as they are: raise the version in pyproject.toml first"
            )

    def seal(self, version: str) -> int:
        """Make ``version`` a release and return how many histories it has. Raises Released when it is one."""
        self.refuse_released(version)
        found = self.histories(version)
        if not found:
            raise Released(f"{version} has no histories: record them first")
        with self.sums.open("a") as sums:
            sums.writelines(f"{_digest(path)}  {version}/{path.name}\n" for path in found)
        return len(found)

    def changes(self) -> Iterator[str]:
        """One sentence for each history that is not as it was released."""
        released = self.released()
        for name, digest in released.items():
            path = self.root / name
            if not path.exists():
                yield f"{name} is gone"
            elif _digest(path) != digest:
                yield f"{name} was changed"
        for version in self.versions():
            added = [f"{version}/{path.name}" for path in self.histories(version)]
            yield from (f"{name} was added" for name in added if self.is_released(version) and name not in released)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


SHELF = Shelf(root=Path(__file__).parent / "histories")
