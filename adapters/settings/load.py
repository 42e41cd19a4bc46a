"""Finding and reading ``mendwork.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adapters.settings.model import Settings
from domain.errors import InvalidInput

FILE = "mendwork.toml"
PREFIX = "MENDWORK_"


def load_settings(*, start: Path, environment: Mapping[str, str]) -> Settings:
    """Read the file that ``MENDWORK_CONFIG`` names, or the first ``mendwork.toml`` in ``start`` and its parents.

    ``MENDWORK_SECTION__KEY=value`` overrides the file. Raises InvalidInput with the file, the field and the reason.
    """
    path = _find(start, environment.get("MENDWORK_CONFIG", ""))
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path}: {error}") from error
    _override(values, environment)
    try:
        return Settings.model_validate({**values, "root": path.parent.resolve()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{path}: {where}: {first['msg']}") from error


def _find(start: Path, named: str) -> Path:
    if named:
        if not Path(named).is_file():
            raise InvalidInput(f"MENDWORK_CONFIG names {named}, which is no file")
        return Path(named).resolve()
    for folder in (start, *start.resolve().parents):
        if (folder / FILE).is_file():
            return (folder / FILE).resolve()
    raise InvalidInput(f"no {FILE} in {start} or above; it names the projects that may be built")


def _override(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        parts = name.removeprefix(PREFIX).lower().split("__")
        if not name.startswith(PREFIX) or len(parts) < 2:
            continue
        section = values
        for part in parts[:-1]:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise InvalidInput(f"{name} overrides a value that is no section")
        section[parts[-1]] = value
