"""Where values come from, by pydantic-settings: flags over the environment over the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, InitSettingsSource, TomlConfigSettingsSource

from adapters.settings.model import Settings
from domain.errors import InvalidInput

PREFIX = "MENDWORK_"
DELIMITER = "__"
# The sources read nothing of it but its fields; a BaseSettings would take values from the process's environment.
_SHAPE = cast("type[BaseSettings]", Settings)


class Environment(EnvSettingsSource):
    """``MENDWORK_SECTION__KEY`` of a mapping that was passed in, never of the process's own environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        super().__init__(_SHAPE, env_prefix=PREFIX, env_nested_delimiter=DELIMITER, case_sensitive=False)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environment.items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """JSON where it looks like it; other text goes to the field as it is ("a,b", "python -m pytest")."""
        if not value.lstrip().startswith(("[", "{")):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            name = next(name for name, given in self._environment.items() if given == value)
            raise InvalidInput(f"{name}: begins like JSON and is none: {error.msg} (at column {error.colno})") from None


def from_file(path: Path) -> dict[str, Any]:
    """The file's values. Raises OSError, UnicodeDecodeError, tomllib.TOMLDecodeError with line and column."""
    return TomlConfigSettingsSource(_SHAPE, toml_file=path).toml_data


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The values of the variables that name a setting. Raises InvalidInput for broken JSON."""
    values = Environment(environment)()
    values.pop("root", None)
    return values


def from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the command line."""
    return InitSettingsSource(_SHAPE, dict(flags))()


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """One nested mapping; later layers win key by key."""
    result: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = result.get(name)
            result[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
