"""Which packages a commit asks for, and which of them nobody has heard of.

A model that invents a name installs whatever somebody has put there for it. So what is in no manifest of before and on
no list is asked about.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from domain.environment.manifests import node, python

PYPI, NPM, GO = "pypi", "npm", "go"


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """``name`` as the registry ``kind`` spells it. With kind "" it is a text for people instead: the address of
    something that comes from elsewhere, or "everything in …" of a manifest that cannot be read."""

    kind: str
    name: str


Reader = Callable[[str], set[str]]
"""From a manifest's text to names, and addresses (with "://" in them). Raises ValueError when it cannot be read."""

_READERS: tuple[tuple[str, str, Reader], ...] = (
    ("pyproject.toml", PYPI, python.pyproject),
    ("requirements*.txt", PYPI, python.requirements),
    ("constraints*.txt", PYPI, python.requirements),
    ("setup.cfg", PYPI, python.setup_cfg),
    ("setup.py", PYPI, python.setup_py),
    ("uv.lock", PYPI, python.lock),
    ("poetry.lock", PYPI, python.lock),
    ("pylock*.toml", PYPI, python.lock),
    ("package.json", NPM, node.package),
    ("package-lock.json", NPM, node.lock),
    ("npm-shrinkwrap.json", NPM, node.lock),
    ("go.mod", GO, node.go_mod),
    ("go.sum", GO, node.go_sum),
)


def normalised(name: str) -> str:
    """As PEP 503 has it: case and the kind of separator make no difference."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(files: Mapping[str, bytes]) -> frozenset[Wanted]:
    """What manifests and lock files, by path, ask for. A manifest that cannot be read counts as "everything in" it, in
    just that state; a file that is no manifest asks for nothing, unless a list of requirements includes it."""
    included = {name for path, content in files.items() for name in includes(path, content)}
    found: set[Wanted] = set()
    for path, content in files.items():
        name = PurePosixPath(path).name
        for pattern, kind, reader in _READERS:
            if PurePosixPath(name).match(pattern):
                found |= _read(path, content, kind=kind, reader=reader)
                break
        else:
            if path in included:
                found |= _read(path, content, kind=PYPI, reader=python.requirements)
    missing = included - files.keys()
    return frozenset(found | {Wanted("", f"everything in {path} (it cannot be read)") for path in missing})


def includes(path: str, content: bytes) -> tuple[str, ...]:
    """The files that a manifest of Python takes more requirements from, by their paths in the repository."""
    name = PurePosixPath(path).name
    text = content.decode(errors="replace")
    named = python.pyproject_files(text) if name == "pyproject.toml" else ()
    if name.endswith((".txt", ".in")):
        named = python.included(text)
    parent = PurePosixPath(path).parent
    return tuple(sorted({_joined(parent, each) for each in named}))


def unknown(
    asked: Collection[Wanted],
    *,
    trusted: Collection[Wanted],
    names: Collection[str],
    known: Mapping[str, Collection[str]],
) -> tuple[str, ...]:
    """What of ``asked`` a person has to allow, sorted.

    ``trusted`` is what was asked for before the change, ``names`` are those that the configuration or a person allows,
    ``known`` are well-known names by kind, spelt as ``Wanted`` has them.
    """
    allowed = {spelling for name in names for spelling in (name, normalised(name))}
    new = set(asked) - set(trusted)
    return tuple(
        sorted({each.name for each in new if each.name not in known.get(each.kind, ()) and each.name not in allowed})
    )


def _read(path: str, content: bytes, *, kind: str, reader: Reader) -> set[Wanted]:
    try:
        names = reader(content.decode())
    except (ValueError, TypeError, AttributeError, RecursionError):
        state = hashlib.sha256(content).hexdigest()[:8]
        return {Wanted("", f"everything in {path} (it cannot be read, state {state})")}
    return {_spelt(kind, name) for name in names}


def _spelt(kind: str, name: str) -> Wanted:
    if "://" in name:
        return Wanted("", _printable(name))
    return Wanted(kind, normalised(name) if kind == PYPI else _printable(name))


def _printable(name: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in name[:200])


def _joined(parent: PurePosixPath, name: str) -> str:
    parts: list[str] = []
    for part in (*parent.parts, *PurePosixPath(name).parts):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
