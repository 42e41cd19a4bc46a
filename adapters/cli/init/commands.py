"""``mendwork init``: look, show, ask once, write."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapters.cli.config.options import Json
from adapters.cli.exits import DONE, INTERRUPTED, REFUSED, exit_code

if TYPE_CHECKING:
    from adapters.cli.init.proposal import Proposal

app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for."""

    path: Path
    name: str = ""
    yes: bool = False
    json: bool = False
    force: bool = False


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="A folder of a git repository.")] = Path(),
    name: Annotated[str, typer.Option(help="The project's name; the folder's by default.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Write what was found, its set-up and registries too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a project of that name.")] = False,
    json: Json = False,
) -> None:
    """Find out how a repository is tested and set up, and write it to mendwork.toml."""
    from adapters.cli.session import say
    from domain.errors import MendworkError

    try:
        code = begin(Wanted(path=path, name=name, yes=yes, json=json, force=force))
    except MendworkError as error:
        say(f"mendwork: {error}")
        code = exit_code("failed", type(error).__name__)
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)


def begin(wanted: Wanted) -> int:
    """Propose, ask, write. Raises InvalidInput, RepositoryRefused."""
    from adapters.cli.init.proposal import propose
    from adapters.cli.init.repository import open_repository
    from adapters.cli.init.writing import exclude_state, text_with, write
    from domain.build.names import check_project_name

    repository = open_repository(wanted.path)
    proposal = propose(repository, name=wanted.name)
    check_project_name(proposal.name)
    target = _target(repository.folder)
    was = target.read_bytes() if target.exists() else None
    text_with(was, proposal, target.parent, force=wanted.force)  # refused before anybody is asked
    agreed = _agreed(proposal, target, wanted)
    if agreed is None:
        return REFUSED
    content = text_with(was, agreed, target.parent, force=wanted.force)
    settings = write(target, content, was=was)
    if settings.state.is_relative_to(repository.folder.resolve()):
        exclude_state(repository.exclude)
    _tell(agreed, target, models=bool(settings.models), json=wanted.json)
    return DONE


def _target(folder: Path) -> Path:
    """The file that commands run there would read: the one that is named, else the nearest, else a new one."""
    from adapters.settings.load import FILE

    named = os.environ.get("MENDWORK_CONFIG", "")
    if named:
        return Path(named)
    return next((each / FILE for each in (folder, *folder.parents) if (each / FILE).is_file()), folder / FILE)


def _agreed(proposal: Proposal, target: Path, wanted: Wanted) -> Proposal | None:
    """The proposal as it was agreed to; None for a no. Raises InvalidInput where nobody can be asked."""
    from adapters.cli.decide.terminal import is_terminal
    from adapters.cli.session import say
    from domain.errors import InvalidInput

    for line in shown(proposal, target):
        say(line)
    if wanted.yes:
        return proposal
    if not is_terminal():
        raise InvalidInput("nobody can be asked here: agree to all of this with --yes")
    return _answer(proposal, target)


def _answer(proposal: Proposal, target: Path) -> Proposal | None:
    """One question; what runs and what it may reach is named in it."""
    choices = {"y": "write it", "n": "leave all as it is"}
    question = f"Write this to {target}"
    if proposal.setup:
        choices["w"] = "write it without the set-up"
        hosts = ", ".join(proposal.setup.registries)
        question += f", and let `{' '.join(proposal.setup.command)}` reach {hosts}"
    if not proposal.test:
        choices["r"] = 'write it with untested = "review": a model has to find nothing grave too'
    said = "/".join(choices)
    while True:
        answer = input_line(f"{question}? ({'; '.join(f'{key}: {what}' for key, what in choices.items())}) [{said}] ")
        if answer is None or answer == "n":
            return None
        if answer == "w" and "w" in choices:
            return replace(proposal, setup=None)
        if answer == "r" and "r" in choices:
            return replace(proposal, untested="review")
        if answer == "y":
            return proposal


def input_line(prompt: str) -> str | None:
    """What is typed, in lower case; None when the input is closed."""
    import asyncio

    from adapters.cli.decide.terminal import read_line

    line = asyncio.run(read_line(prompt))
    return None if line is None else line.lower()


def shown(proposal: Proposal, target: Path) -> Iterator[str]:
    """Each value with where it was seen."""
    from adapters.cli.lines import plain

    because = proposal.because
    rows = [("project", proposal.name, f"written to {target}")]
    rows.append(("branch", proposal.branch, because["branch"]))
    tests = " ".join(proposal.test) if proposal.test else f'none: untested = "{proposal.untested}" counts'
    rows.append(("tests", tests, because["test"]))
    if proposal.toolchain:
        rows.append(("toolchain", ", ".join(proposal.toolchain), "shown read-only to the sandbox"))
    if proposal.setup:
        setup = proposal.setup
        rows.append(("set-up", " ".join(setup.command), because["setup"]))
        rows.append(("", f"into {setup.folder}", "shown read-only to later runs"))
        rows.append(("", f"may reach {', '.join(setup.registries)}", "and nothing else"))
    rows += [("limits", f"{key} = {most}", because["limits"]) for key, most in proposal.limits.items()]
    for label, value, why in rows:
        yield f"{label:<10} {plain(value)}  ({plain(why)})"
    for other in proposal.others:
        yield f"{'also seen':<10} {plain(other)}"
    for warning in proposal.warnings:
        yield f"{'missing':<10} {plain(warning)}"


def _tell(proposal: Proposal, target: Path, *, models: bool, json: bool) -> None:
    from adapters.cli.session import put, say

    if json:
        setup = asdict(proposal.setup) if proposal.setup else None
        facts = {name: getattr(proposal, name) for name in ("name", "branch", "test", "untested", "toolchain")}
        facts |= {"setup": setup, "limits": dict(proposal.limits), "because": dict(proposal.because)}
        put(jsonlib.dumps({"config": str(target), **facts, "others": proposal.others, "warnings": proposal.warnings}))
    else:
        put(str(target))
    if not models:
        say("no model is configured yet: the file's comments show how, in [models.NAME]")
