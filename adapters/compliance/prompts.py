"""What every PromptTemplates has to do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from domain.build.plan import PlannedTask
from domain.errors import InvalidInput, UnknownName
from domain.ports.prompts import PromptTemplates
from domain.review.diff import ShownDiff

TASK = PlannedTask(id="api", title="The API", instructions="do it", files=(), tests=(), depends_on=())
PLAN = {"spec": "add tags", "tree": ("a.py (3 bytes)",), "readme": "", "problems": (), "outlines": (), "strategy": ""}
CHANGE = {
    "spec": "add tags", "task": TASK, "tree": (), "files": (), "outlines": (), "asked": (), "rounds": 0, "strategy": "",
    "reason": "", "report": "", "change": "",
}  # fmt: skip
REVIEW = {"spec": "add tags", "tasks": (TASK,), "missing": (), "diff": ShownDiff(text="+tags"), "files": ()}
PRODUCT: Mapping[str, Mapping[str, object]] = {"plan": PLAN, "change": CHANGE, "review": REVIEW}


class PromptTemplatesCompliance:
    """A subclass gives the fixture ``templates`` with the product's own "plan", "change" and "review"."""

    @pytest.mark.parametrize("name", sorted(PRODUCT))
    def test_each_asks_for_its_own_schema_and_shows_the_spec(self, templates: PromptTemplates, name: str) -> None:
        prompt = templates.render(name, PRODUCT[name])
        assert [message.role for message in prompt.messages] == ["system", "user"]
        assert f"`{name.capitalize()}`" in prompt.messages[0].content
        assert "add tags" in prompt.messages[1].content
        assert prompt.base == "", "which commit it shows is not the template's to say"

    def test_values_reach_the_messages(self, templates: PromptTemplates) -> None:
        assert "add tags" in templates.render("plan", PLAN).messages[-1].content

    def test_the_same_values_give_the_same_prompt(self, templates: PromptTemplates) -> None:
        assert templates.render("plan", PLAN) == templates.render("plan", PLAN)

    def test_a_value_that_was_not_given_is_an_error(self, templates: PromptTemplates) -> None:
        with pytest.raises(InvalidInput, match=r"readme|tree|problems|outlines|strategy"):
            templates.render("plan", {"spec": "add tags"})

    def test_an_unknown_template_lists_the_known_ones(self, templates: PromptTemplates) -> None:
        with pytest.raises(UnknownName, match="plan"):
            templates.render("none", {})

    def test_values_are_text_and_never_a_template(self, templates: PromptTemplates) -> None:
        prompt = templates.render("plan", {**PLAN, "spec": "{{ 7 * 7 }}"})
        assert "{{ 7 * 7 }}" in prompt.messages[-1].content
