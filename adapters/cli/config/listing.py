"""``mendwork config list`` and ``config get``."""

from __future__ import annotations

import json as jsonlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from adapters.cli.config.lines import Keys, covering, leaves, line_numbers
from adapters.cli.config.masking import masked
from adapters.cli.config.mistakes import mistakes
from adapters.cli.config.origins import Origins, origins
from adapters.cli.exits import DONE
from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.settings import Settings, load_settings
from adapters.settings.load import FILE
from domain.errors import InvalidInput, UnknownName

ROLES = ("reasoning", "coding", "validation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An effective value, as it may be shown."""

    key: str
    value: Any
    origin: str

    def line(self, *, show_origin: bool) -> str:
        """For people; the value is JSON, in one line."""
        shown = f"{self.key} = {jsonlib.dumps(self.value, ensure_ascii=False)}"
        return plain(f"{self.origin}  {shown}" if show_origin else shown)


async def show_all(*, start: Path, environment: Mapping[str, str], show_origin: bool, json: bool) -> int:
    """Print every value. Raises InvalidInput for a configuration that cannot be used."""
    _print(values(*configured(start=start, environment=environment)), show_origin=show_origin, json=json)
    return DONE


async def show_one(key: str, *, start: Path, environment: Mapping[str, str], show_origin: bool, json: bool) -> int:
    """Print one value alone, or all of a section. Raises UnknownName with the nearest key."""
    known = list(values(*configured(start=start, environment=environment)))
    exact = [each for each in known if each.key == key]
    if exact:
        shown = exact[0].value if isinstance(exact[0].value, str) else jsonlib.dumps(exact[0].value)
        text = plain(f"{exact[0].origin}  {shown}" if show_origin else shown)
        put(jsonlib.dumps(asdict(exact[0])) if json else text)
        return DONE
    below = [each for each in known if each.key.startswith(f"{key}.")]
    if not below:
        near = get_close_matches(key, [each.key for each in known], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`mendwork config list` shows those there are"
        raise UnknownName(f"no value has the key {plain(key)[:200]!r}; {hint}")
    _print(below, show_origin=show_origin, json=json)
    return DONE


def configured(*, start: Path, environment: Mapping[str, str]) -> tuple[Settings, Origins]:
    """The settings and where they come from. Each unknown key of the file is said in a line of its own; then raises
    InvalidInput."""
    try:
        settings = load_settings(start=start, environment=environment)
    except InvalidInput:
        found = unknown_keys(configuration_file(start, environment))
        for line in found:
            say(line)
        if found:
            raise InvalidInput(f"the configuration has {len(found)} unknown key{'s' * (len(found) > 1)}") from None
        raise
    file = configuration_file(start, environment)
    return settings, origins(file, environment)


def configuration_file(start: Path, environment: Mapping[str, str]) -> Path | None:
    """The file that ``load_settings`` reads; None where there is none."""
    if named := environment.get("MENDWORK_CONFIG", ""):
        return Path(named).resolve() if Path(named).is_file() else None
    places = (folder / FILE for folder in (start, *start.resolve().parents))
    return next((place.resolve() for place in places if place.is_file()), None)


def unknown_keys(file: Path | None) -> Sequence[str]:
    """A sentence for each; () for a file that is no TOML."""
    try:
        text = file.read_text(encoding="utf-8") if file else ""
        found = mistakes(tomllib.loads(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ()
    numbers = line_numbers(text)
    return [plain(each.sentence(where=f"{file}:{_line(numbers, each.keys)}")) for each in found]


def values(settings: Settings, given: Origins) -> Iterator[Value]:
    """Everything that counts, by key."""
    effective = settings.model_dump(mode="json", exclude={"root"})
    effective["store"] = settings.store_url
    effective["roles"] = {role: list(settings.chain(role)) for role in ROLES}
    for keys, value in sorted(leaves(effective).items()):
        yield Value(key=_dotted(keys), value=masked(keys, value), origin=given.of(keys))


def _print(shown: Iterator[Value] | Sequence[Value], *, show_origin: bool, json: bool) -> None:
    if json:
        put(jsonlib.dumps([asdict(each) for each in shown]))
        return
    for each in shown:
        put(each.line(show_origin=show_origin))


def _line(numbers: Mapping[Keys, int], keys: Keys) -> int:
    below = [line for given, line in numbers.items() if given[: len(keys)] == keys]
    return min(below) if below else numbers.get(covering(keys, numbers) or (), 1)


def _dotted(keys: Keys) -> str:
    """As TOML writes it: names with a dot or a blank in quotes."""
    return ".".join(key if key.replace("-", "_").isidentifier() else jsonlib.dumps(key) for key in keys)
