"""Configuration, from the environment and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class ConfigError(Exception):
    """A variable has a value that the service cannot start with."""


@dataclass(frozen=True)
class Config:
    """``port`` 0 picks a free one. ``release`` names what was deployed and is shown by ``/version``."""

    host: str
    port: int
    data_dir: Path
    log_level: str
    release: str

    @property
    def database(self) -> Path:
        return self.data_dir / "notes.db"


def read_config(environment: Mapping[str, str]) -> Config:
    """Read HOST, PORT, DATA_DIR, LOG_LEVEL and RELEASE. Raises ConfigError with the variable and the reason."""
    level = environment.get("LOG_LEVEL", "INFO").upper()
    if level not in LOG_LEVELS:
        raise ConfigError(f"LOG_LEVEL is {level!r}; it must be one of {', '.join(LOG_LEVELS)}")
    return Config(
        host=environment.get("HOST", "127.0.0.1"),
        port=_port(environment.get("PORT", "8080")),
        data_dir=Path(environment.get("DATA_DIR", "data")),
        log_level=level,
        release=environment.get("RELEASE", ""),
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ConfigError(f"PORT is {text!r}; it must be a number from 0 to 65535")
    return int(text)
