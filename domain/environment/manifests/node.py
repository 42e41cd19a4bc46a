"""The manifests of npm and Go. Every reader raises ValueError (or TypeError, AttributeError for another shape) when it
cannot tell all the names; what comes from an address instead of a registry is given by that address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_TABLES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_PLAIN = re.compile(r"(?:[\s\w.*^~<>=|+-]|x)*")
_MODULE = re.compile(r"\s*(?:require\s+)?([\w.~-]+(?:\.[\w.~-]+)(?:/[\w.~+-]+)*)\s+v\d")
_REPLACED = re.compile(r"=>\s*([\w.~-]+(?:/[\w.~+-]+)+)\s+v\d")


def package(text: str) -> set[str]:
    """package.json, with what it overrides."""
    table = json.loads(text)
    found = {each for key in _TABLES for pair in table.get(key, {}).items() for each in _specified(*pair)}
    return found | set(_overridden(table.get("overrides", {})))


def lock(text: str) -> set[str]:
    """package-lock.json of every version: the names, and each address that is not of a file of its package."""
    table = json.loads(text)
    found: set[str] = set()
    for path, entry in table.get("packages", {}).items():
        if "node_modules/" in path and not entry.get("link"):
            found |= set(_locked(str(entry.get("name") or path.rpartition("node_modules/")[2]), entry))
    waiting = [table.get("dependencies", {})]
    while waiting:
        for name, entry in waiting.pop().items():
            found |= set(_locked(name, entry))
            waiting.append(entry.get("dependencies", {}))
    return found


def go_mod(text: str) -> set[str]:
    """The modules that are required, or replace others."""
    lines = [line.partition("//")[0] for line in text.splitlines()]
    required = [_MODULE.match(line) for line in lines if "=>" not in line]
    replaced = [_REPLACED.search(line) for line in lines]
    return {found[1] for found in (*required, *replaced) if found}


def go_sum(text: str) -> set[str]:
    """The modules whose content is known."""
    return {line.split()[0] for line in text.splitlines() if len(line.split()) == 3}


def _specified(name: str, value: Any) -> Iterator[str]:
    """``value`` is a range of versions, a tag, an alias ("npm:other@1"), a folder, or an address."""
    if not isinstance(value, str):
        raise TypeError(f"{name} has no version")
    if value.startswith("npm:"):
        yield re.sub(r"(?<=.)@[^@/]*$", "", value.removeprefix("npm:"))
    elif value.startswith(("file:", "link:", "workspace:", "./", "../")):
        return
    elif _PLAIN.fullmatch(value):
        yield name
    else:
        yield value if "://" in value else f"url://{value}"


def _overridden(table: Any) -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _overridden(value)
        elif not value.startswith("$"):
            yield from _specified(re.sub(r"(?<=.)@[^@/]*$", "", name), value)


def _locked(name: str, entry: Any) -> Iterator[str]:
    yield name
    resolved = entry.get("resolved", "")
    ours = not isinstance(resolved, str) or resolved.startswith(("file:", "../", "./"))
    if resolved and not ours and f"/{name}/-/" not in resolved:
        yield resolved if "://" in resolved else f"url://{resolved}"
