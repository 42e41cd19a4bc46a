"""Prompt templates by engine."""

REGISTRY = {"jinja": "adapters.prompts.jinja:JinjaPrompts"}
