"""The lists of well-known packages that come with Mendwork."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).parent / "known"


def known_packages() -> Mapping[str, frozenset[str]]:
    """Names by kind ("pypi", "npm", "go"), spelt as their registries have them (PyPI's by PEP 503)."""
    return {path.stem: frozenset(_names(path)) for path in sorted(_FOLDER.glob("*.txt"))}


def _names(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
