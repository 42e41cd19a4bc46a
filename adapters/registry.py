"""Registries are dictionaries: name to ``module:factory``, imported when used; an unknown name lists the known ones."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from domain.errors import UnknownName


def resolve(registry: Mapping[str, str], kind: str, name: str) -> Any:
    """The factory that ``name`` stands for. Raises UnknownName; ``kind`` is the word for people ("sandbox")."""

    if name not in registry:
        raise UnknownName.among(kind, name, registry)
    module, _, factory = registry[name].partition(":")
    return getattr(import_module(module), factory)
