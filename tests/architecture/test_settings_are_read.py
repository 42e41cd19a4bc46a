"""No key of the configuration that changes nothing: somebody reads each, by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
READERS = ("adapters", "activities", "workflows", "domain")
KEYS = (*sorted((CHECKOUT / "adapters" / "settings").glob("*.py")), CHECKOUT / "domain" / "delivery" / "project.py")
BY_THE_WORKERS_NAME = re.compile(r"(deploy|saga|sandbox|workspace)_slots")


def keys() -> Iterator[tuple[str, str]]:
    """Class and field of everything that can be configured."""
    for path in KEYS:
        for found in ast.walk(ast.parse(path.read_text())):
            for line in found.body if isinstance(found, ast.ClassDef) else ():
                if isinstance(found, ast.ClassDef) and isinstance(line, ast.AnnAssign):
                    assert isinstance(line.target, ast.Name)
                    yield found.name, line.target.id


def test_every_key_is_read_somewhere() -> None:
    sources = [
        path for folder in READERS for path in (CHECKOUT / folder).rglob("*.py") if "compliance" not in path.parts
    ]
    read = {name for path in sources for name in re.findall(r"\.([a-z_0-9]+)\b", path.read_text())}
    listed = list(keys())
    assert len(listed) > 100
    assert [key for key in listed if key[1] not in read and not BY_THE_WORKERS_NAME.fullmatch(key[1])] == []
