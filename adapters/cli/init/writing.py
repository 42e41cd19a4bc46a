"""A project's section in mendwork.toml: written whole or not at all, everything else in the file kept as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adapters.cli.init.proposal import Proposal
from adapters.settings import Settings, load_settings
from domain.errors import InvalidInput

STATE = "/.mendwork/"
_HEAD = "# What Mendwork may build, and how. `mendwork build spec.md` starts a build of a specification in words.\n"
_MODELS = """
# A model to ask, for each role; any name that litellm knows, or any OpenAI-compatible server:
#
# [models.main]
# model = "anthropic/claude-sonnet-4-5"     # its key is read from the environment, here ANTHROPIC_API_KEY
#
# [models.local]
# model = "openai/qwen3"
# base_url = "http://127.0.0.1:8000/v1"
# input_price = 0.0                          # USD per million tokens; needed where litellm has no price
# output_price = 0.0
"""
_HEADER = re.compile(r"^[ \t]*\[")


def section(proposal: Proposal, root: Path) -> str:
    """The project's section as TOML, with a word on each line; paths are relative to ``root``."""
    because, name = proposal.because, proposal.name
    lines = [f"[projects.{name}]"]
    lines.append(_line("repository", _relative(proposal.folder, root), because["repository"]))
    lines.append(_line("branch", proposal.branch, because["branch"]))
    if proposal.test:
        lines.append(_line("test", list(proposal.test), because["test"]))
    else:
        lines.append('# test = ["…"]  # no tests were found')
        lines.append(_line("untested", proposal.untested, 'what counts instead: "syntax", or "review" by a model too'))
    if proposal.toolchain:
        lines.append(f"# toolchain = {_toml(list(proposal.toolchain))}  # what the sandbox shows, found by itself")
    lines += [f"# also seen: {_plain(other)}" for other in proposal.others]
    if proposal.setup:
        setup = proposal.setup
        lines += ["", f"[projects.{name}.setup]"]
        lines.append(_line("command", list(setup.command), f"{because['setup']}; run in the sandbox"))
        lines.append(_line("folder", setup.folder, "what it leaves behind, shown read-only to later runs"))
        lines.append(_line("registries", list(setup.registries), "the only hosts that it may reach"))
        if setup.inputs:
            lines.append(_line("inputs", list(setup.inputs), "set up again when one of these changes"))
        packages = _line("packages", list(setup.packages), "names beyond the manifest's that nobody has to allow")
        lines.append(packages if setup.packages else f"# {packages}")
    if proposal.limits:
        lines += ["", f"[projects.{name}.limits]", f"# {_plain(because['limits'])}"]
        lines += [f"{key} = {value}" for key, value in proposal.limits.items()]
    return "\n".join(lines) + "\n"


def text_with(old: bytes | None, proposal: Proposal, root: Path, *, force: bool) -> bytes:
    """The file's new content. Raises InvalidInput when the project is there already and not to be replaced."""
    new = section(proposal, root)
    if old is None:
        return (_HEAD + "\n" + new + _MODELS).encode()
    text, known = _parsed(old)
    if proposal.name in known.get("projects", {}):
        if not force:
            raise InvalidInput(
                f"the project {proposal.name} is in the file already: name another with --name, or replace it: --force"
            )
        text = _without(text, known, proposal.name)
    ends = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith("\n") else ends
    return (text + gap + (ends if text.strip() else "") + new.replace("\n", ends)).encode()


def write(target: Path, content: bytes, *, was: bytes | None) -> Settings:
    """Put ``content`` in place of ``was`` at once, after it was read as a configuration; the file's mode stays.

    Raises InvalidInput when it does not hold, or when the file has changed since.
    """
    target = target.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(target.stat().st_mode & 0o7777 if was is not None else 0o644)
        try:
            settings = load_settings(start=target.parent, environment={"MENDWORK_CONFIG": str(draft)})
        except InvalidInput as error:
            raise InvalidInput(f"with this project, {str(error).replace(str(draft), str(target))}") from None
        if (target.read_bytes() if target.exists() else None) != was:
            raise InvalidInput(f"{target} has changed meanwhile: run init again")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return settings


def exclude_state(exclude: Path) -> bool:
    """Keep Mendwork's folder out of ``git status`` by the repository's own list. Returns whether it was not there."""
    old = exclude.read_bytes() if exclude.exists() else b""
    if STATE.encode() in old.split():
        return False
    exclude.parent.mkdir(parents=True, exist_ok=True)
    with exclude.open("ab") as file:
        file.write((b"" if not old or old.endswith(b"\n") else b"\n") + STATE.encode() + b"\n")
    return True


def _without(text: str, known: dict[str, Any], name: str) -> str:
    """The text without the project's tables. Raises InvalidInput where that would touch anything else."""
    wanted = {**known, "projects": {key: value for key, value in known["projects"].items() if key != name}}
    rest = "".join(_kept(text.splitlines(keepends=True), name))
    with contextlib.suppress(tomllib.TOMLDecodeError):
        left = tomllib.loads(rest)
        if {**left, "projects": left.get("projects", {})} == wanted:
            return rest
    raise InvalidInput(f"the project {name} cannot be told apart in the file: take it out by hand first")


def _kept(lines: list[str], name: str) -> Iterator[str]:
    quoted = rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"
    ours = re.compile(rf"^[ \t]*\[\[?[ \t]*projects[ \t]*\.[ \t]*{quoted}[ \t]*[.\]]")
    dropped: list[str] = []
    inside = False
    for line in lines:
        if _HEADER.match(line):
            if inside and not ours.match(line):
                yield from _comments_before(dropped)
            inside, dropped = ours.match(line) is not None, []
        if inside:
            dropped.append(line)
        else:
            yield line


def _comments_before(dropped: list[str]) -> list[str]:
    """The comments and blanks at the end of what goes: they belong to what comes next."""
    last = len(dropped)
    while last and (not dropped[last - 1].strip() or dropped[last - 1].lstrip().startswith("#")):
        last -= 1
    while last < len(dropped) and dropped[last].strip():  # right below the last value: still of that
        last += 1
    return dropped[last:]


def _parsed(old: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = old.decode()
        return text, tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"the file that is there cannot be read as TOML: {error}") from None


def _relative(folder: Path, root: Path) -> str:
    return os.path.relpath(folder.resolve(), root.resolve())


def _line(key: str, value: object, word: str) -> str:
    return f"{key} = {_toml(value)}  # {_plain(word)}"


def _toml(value: object) -> str:
    """A text or a list of texts: JSON's escapes are TOML's, but for surrogates and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
