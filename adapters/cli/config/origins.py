"""Where each value comes from: a line of the file, a variable of the environment, or nobody."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapters.cli.config.lines import Keys, covering, leaves, line_numbers

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """``lines`` and ``variables`` hold what was given, by path: a line of ``file``, or a variable's name."""

    file: Path | None = None
    lines: Mapping[Keys, int] = field(default_factory=dict)
    variables: Mapping[Keys, str] = field(default_factory=dict)

    def of(self, keys: Keys) -> str:
        """ "mendwork.toml:12", "MENDWORK_STORE" or "default". What was given for a whole table counts for all in it;
        a variable counts before the file."""
        named = covering(keys, self.variables)
        if named is not None:
            return self.variables[named]
        written = covering(keys, self.lines)
        if written is None or any(given[: len(written)] == written for given in self.variables):
            return DEFAULT  # the variable made a table of what the file gives in short
        return f"{self.file}:{self.lines[written]}"


def origins(file: Path | None, environment: Mapping[str, str]) -> Origins:
    """For a configuration that could be read. Raises OSError when the file has gone since."""
    text = file.read_text(encoding="utf-8") if file else ""
    given = {keys for keys, value in leaves(tomllib.loads(text)).items() if value != {}}
    lines = {keys: line for keys, line in line_numbers(text).items() if keys in given}
    return Origins(file=file, lines=lines, variables=_variables(environment))


def _variables(environment: Mapping[str, str]) -> dict[Keys, str]:
    """Short names first: MENDWORK_A__B counts before what MENDWORK_A says of b in JSON."""
    from adapters.settings.sources import PREFIX, from_environment

    ours = sorted((name for name in environment if name.upper().startswith(PREFIX)), key=len)
    return {keys: name for name in ours for keys in leaves(from_environment({name: environment[name]}))}
