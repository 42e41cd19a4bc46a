"""Finding and reading ``mendwork.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from adapters.settings.blobs import SECRETS
from adapters.settings.model import Settings
from adapters.settings.section import BadKey, unknown_key
from domain.errors import InvalidInput

FILE = "mendwork.toml"


def load_settings(*, start: Path, environment: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """Read the file that ``MENDWORK_CONFIG`` names, or the first ``mendwork.toml`` in ``start`` and its parents.

    ``MENDWORK_SECTION__KEY=value`` overrides the file, and ``flags``, nested as the file is, override both. Keys of
    the environment read as lower case; lists are JSON or separated by commas. Raises InvalidInput in one sentence with
    the file or variable, the field and the reason, and never the value.
    """
    from adapters.settings.sources import from_environment, from_flags  # lazy: a third of ``--help``'s time

    path = _find(start, environment.get("MENDWORK_CONFIG", ""))
    given = _Given(path=path, file=_read(path), environment=environment, flags=flags or {})
    given.refuse_unknown_sections()
    given.refuse_keys()
    return given.settings(from_environment(environment), from_flags(given.flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What was given, and by whom."""

    path: Path
    file: Mapping[str, Any]
    environment: Mapping[str, str] = field(repr=False)
    flags: Mapping[str, Any]

    def settings(self, environment: Mapping[str, Any], flags: Mapping[str, Any]) -> Settings:
        from adapters.settings.sources import merged

        try:
            return Settings.model_validate(merged(self.file, environment, flags, {"root": self.path.parent}))
        except ValidationError as error:
            first, *more = error.errors(include_url=False, include_input=False)
            reason = first["msg"].removeprefix("Value error, ")
            others = f" (and {len(more)} more)" if more else ""
            sentence = f"{self._origin(_exact(first))}: {_dotted(first['loc'])}{reason}{others}"
        raise InvalidInput(sentence)

    def refuse_keys(self) -> None:
        """What opens the bucket or the store, in a file that is copied, shown and kept."""
        if "store_password" in self.file:
            raise InvalidInput(f"{self.path}: store_password: has no place here: set MENDWORK_STORE_PASSWORD")
        for key in SECRETS:
            if _inside(self.file, ["blobs", key]):
                raise InvalidInput(
                    f"{self.path}: blobs.{key}: no key has a place here: set MENDWORK_BLOBS__{key.upper()}"
                )

    def refuse_unknown_sections(self) -> None:
        """Values that no source would look at: a misspelt section of the environment, a ``root`` in the file."""
        if "root" in self.file:
            raise InvalidInput(f"{self.path}: {unknown_key(Settings, 'root')}")
        for name in self.environment:
            section, delimiter, _ = name.upper().removeprefix("MENDWORK_").partition("__")
            known = section.lower() in Settings.model_fields and section != "ROOT"
            if name.upper().startswith("MENDWORK_") and delimiter and not known:
                raise InvalidInput(f"{name}: {unknown_key(Settings, section.lower())}")

    def _origin(self, loc: tuple[int | str, ...]) -> str:
        """Who gave the value at ``loc``: the command line, a variable of the environment, or the file."""
        names = [str(part) for part in loc]
        if _inside(self.flags, names):
            return "the command line"
        for length in range(len(names), 0, -1):
            for name in self.environment:
                if name.upper() == "MENDWORK_" + "__".join(names[:length]).upper():
                    return name
        below = "MENDWORK_" + "__".join([*names[:2], ""]).upper()
        only_there = not _inside(self.file, names[:2])
        return next((n for n in self.environment if only_there and n.upper().startswith(below)), str(self.path))


def _exact(error: ErrorDetails) -> tuple[int | str, ...]:
    """Where the bad value is; a section's own check knows the key."""
    cause = error.get("ctx", {}).get("error")
    return (*error["loc"], cause.key) if isinstance(cause, BadKey) else error["loc"]


def _inside(values: Any, names: list[str]) -> bool:
    for name in names:
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return bool(names)


def _dotted(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc) + ": " if loc else ""


def _read(path: Path) -> Mapping[str, Any]:
    from adapters.settings.sources import from_file

    try:
        return from_file(path)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path}: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None


def _find(start: Path, named: str) -> Path:
    if named:
        if not Path(named).is_file():
            raise InvalidInput(f"MENDWORK_CONFIG names {named}, which is no file")
        return Path(named).resolve()
    for folder in (start, *start.resolve().parents):
        if (folder / FILE).is_file():
            return (folder / FILE).resolve()
    raise InvalidInput(f"no {FILE} in {start} or above; it names the projects that may be built")
