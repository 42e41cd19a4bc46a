"""What every PromptTemplates has to do."""

from __future__ import annotations

import pytest

from domain.errors import InvalidInput, UnknownName
from domain.ports.prompts import PromptTemplates

PLAN = {"spec": "add tags", "tree": ("a.py (3 bytes)",), "readme": "", "problems": ()}


class PromptTemplatesCompliance:
    """A subclass gives the fixture ``templates`` with the product's own "plan"."""

    def test_values_reach_the_messages(self, templates: PromptTemplates) -> None:
        assert "add tags" in templates.render("plan", PLAN).messages[-1].content

    def test_the_same_values_give_the_same_prompt(self, templates: PromptTemplates) -> None:
        assert templates.render("plan", PLAN) == templates.render("plan", PLAN)

    def test_a_value_that_was_not_given_is_an_error(self, templates: PromptTemplates) -> None:
        with pytest.raises(InvalidInput, match=r"readme|tree|problems"):
            templates.render("plan", {"spec": "add tags"})

    def test_an_unknown_template_lists_the_known_ones(self, templates: PromptTemplates) -> None:
        with pytest.raises(UnknownName, match="plan"):
            templates.render("none", {})

    def test_values_are_text_and_never_a_template(self, templates: PromptTemplates) -> None:
        prompt = templates.render("plan", {**PLAN, "spec": "{{ 7 * 7 }}"})
        assert "{{ 7 * 7 }}" in prompt.messages[-1].content
