"""What the documents show can be written and typed as it stands: configurations load, commands and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from adapters.cli.app import app
from adapters.settings import load_settings
from tests.architecture.sources import ROOT

DOCS = ("docs/repositories.md", "docs/again.md", "docs/upgrades.md", "README.md")
FENCE = re.compile(r"^```(toml|console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(*kinds: str) -> list[tuple[str, str]]:
    found = [(name, each) for name in DOCS for each in FENCE.finditer((ROOT / name).read_text())]
    return [(name, each[2]) for name, each in found if each[1] in kinds]


def typed() -> list[tuple[str, list[str]]]:
    """Every command line of ours that a document shows, in words."""
    lines = [(name, line) for name, block in blocks("console", "sh") for line in block.splitlines()]
    ours = [(name, re.sub(r"^(\$ )?(\.venv/bin/)?", "", line)) for name, line in lines]
    return [(name, shlex.split(line, comments=True)[1:]) for name, line in ours if line.startswith("mendwork ")]


@pytest.mark.parametrize(("name", "text"), blocks("toml"), ids=lambda value: value[:20] if "\n" not in value else "")
def test_a_configuration_that_is_shown_can_be_loaded(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "mendwork.toml").write_text(text)
    settings = load_settings(start=tmp_path, environment={})
    assert settings.projects, name


@pytest.mark.parametrize(
    ("name", "words"), typed(), ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_command_that_is_shown_can_be_typed(name: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"{name}: mendwork has no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known, name


LINK = re.compile(r"!?\[[^\]]+\]\((?!https?:)([^)#]+)")


def test_every_link_of_the_documents_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_documents_show_something() -> None:
    assert len(typed()) > 20
    assert len(blocks("toml")) >= 2
