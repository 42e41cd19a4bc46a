"""Prompts as files, rendered strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from domain.build.prompt import Prompt


class PromptTemplates(Protocol):
    """Renders a prompt from a template's name and its values; a value that is not given is an error."""

    def render(self, template: str, values: Mapping[str, object]) -> Prompt:
        """Raises UnknownName, or InvalidInput when the template asks for a value that was not given."""
        ...
