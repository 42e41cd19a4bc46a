"""Indexes of source by where they are kept; each is imported when it is used."""

from pathlib import Path

from adapters.registry import resolve
from domain.ports.code import CodeIndex

REGISTRY = {"sqlite": "adapters.code.sqlite_index:SqliteCodeIndex"}


def open_code(state: Path, name: str = "sqlite") -> CodeIndex:
    """The index below the state folder, ``index/<project>.db``. Raises UnknownName."""
    index: CodeIndex = resolve(REGISTRY, "code index", name)(folder=state / "index")
    return index
