"""The product's own source files, as the checks read them."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
HEXAGON = ("domain", "workflows", "activities", "adapters")
PRODUCT = (*HEXAGON, "setup", "worker.py", "starter.py")


def files(*places: str) -> list[Path]:
    """The Python files in ``places``, which are folders or files below the root."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def tree(path: Path) -> ast.Module:
    """Its syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name(path: Path) -> str:
    """The path below the root, as people read it."""
    return str(path.relative_to(ROOT))


def modules(package: str) -> Iterator[ModuleType]:
    """Every module of a package, imported."""
    folder = importlib.import_module(package)
    for found in pkgutil.walk_packages(folder.__path__, f"{package}."):
        yield importlib.import_module(found.name)
