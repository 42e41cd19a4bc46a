"""Prompts as Jinja2 files, rendered strictly in a sandbox, versioned by the digest of their text.

A template is one file; lines of the form ``=== system`` and ``=== user`` start a message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from domain.build.prompt import Prompt
from domain.errors import InvalidInput, UnknownName
from domain.ports.language_model import Message

FOLDER = Path(__file__).parent / "templates"
_ROLE = re.compile(r"^=== (system|user)\n", re.MULTILINE)


class JinjaPrompts:
    """Renders the templates of one folder."""

    def __init__(self, *, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters |= {"fenced": fenced, "line": line}

    def render(self, template: str, values: Mapping[str, object]) -> Prompt:
        """Raises UnknownName, or InvalidInput when the template asks for a value that was not given."""
        path = self._folder / f"{template}.md.j2"
        if not path.is_file():
            names = (p.name.removesuffix(".md.j2") for p in self._folder.glob("*.md.j2"))
            raise UnknownName.among("prompt template", template, names)
        source = path.read_text(encoding="utf-8")
        # Split before rendering: no text that is filled in can start a message of its own.
        _, *parts = _ROLE.split(source)
        try:
            messages = tuple(
                Message(role=role, content=self._environment.from_string(part).render(values).strip())
                for role, part in zip(parts[::2], parts[1::2], strict=True)
            )
        except UndefinedError as error:
            raise InvalidInput(f"the prompt template {template!r} lacks a value: {error.message}") from error
        except TemplateError as error:
            raise InvalidInput(f"the prompt template {template!r} cannot be rendered: {error.message}") from error
        version = hashlib.sha256(source.encode()).hexdigest()
        return Prompt(template=template, version=version, messages=messages)


def fenced(text: str) -> str:
    """``text`` between fences longer than any run of backticks in it, so that it cannot end its own block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def line(text: str) -> str:
    """``text`` as part of a line of ours: it can neither begin a line of its own nor end a word in backticks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).replace("`", "'").split())
