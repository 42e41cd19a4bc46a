"""The prompt templates pass their port's suite."""

from __future__ import annotations

import pytest

from adapters.compliance.prompts import PromptTemplatesCompliance
from adapters.prompts import REGISTRY
from adapters.registry import resolve
from domain.ports.prompts import PromptTemplates


class TestJinja(PromptTemplatesCompliance):
    @pytest.fixture
    def templates(self) -> PromptTemplates:
        templates: PromptTemplates = resolve(REGISTRY, "prompt templates", "jinja")()
        return templates
