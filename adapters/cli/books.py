"""The commands that read the books: the log as a tree, the log again from histories, the money."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapters.cli.config.completing import build_names, phase_names, project_names, task_names
from adapters.cli.config.options import BuildAlone, Json

app = typer.Typer()
events = typer.Typer(no_args_is_help=True, help="The event log itself.")
app.add_typer(events, name="events")


@app.command()
def trace(
    build: BuildAlone,
    phase: Annotated[str, typer.Option(help="Only this phase.", autocompletion=phase_names)] = "",
    task: Annotated[str, typer.Option(help="Only this task.", autocompletion=task_names)] = "",
    jsonl: Annotated[bool, typer.Option("--jsonl", help="The events, a JSON line each.")] = False,
    json: Json = False,
) -> None:
    """Show a build's log as a tree, with durations, tokens and cost."""
    from adapters.cli.log import trace as command
    from adapters.cli.session import run

    wanted = command.TraceWanted(build=build, phase=phase, task=task, json=json, jsonl=jsonl)
    run(lambda settings: command.trace(settings, wanted))


@events.command()
def rebuild(
    build: Annotated[
        str, typer.Argument(help="A build's name; not needed with --from.", autocompletion=build_names)
    ] = "",
    files: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="A history exported by `temporal workflow show -o json`."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what differs.")] = False,
    json: Json = False,
) -> None:
    """Write a build's log again from Temporal's histories."""
    from adapters.cli.log import rebuild as command
    from adapters.cli.session import run

    wanted = command.RebuildWanted(build=build, files=tuple(files or ()), dry_run=dry_run, json=json)
    run(lambda settings: command.rebuild(settings, wanted))


@app.command()
def cost(
    build: Annotated[
        str, typer.Argument(help="A build's name; without it, all builds.", autocompletion=build_names)
    ] = "",
    project: Annotated[str, typer.Option(help="All builds of this project.", autocompletion=project_names)] = "",
    by: Annotated[str, typer.Option(help="Group by build, phase, task, role, model, day, project or user.")] = "",
    json: Json = False,
) -> None:
    """Show what calls cost, and those of which nobody knows."""
    from adapters.cli import cost as command
    from adapters.cli.session import run

    wanted = command.CostWanted(build=build, project=project, by=by, json=json)
    run(lambda settings: command.cost(settings, wanted))


@app.command()
def reconcile(
    call: Annotated[str, typer.Argument(help="A lost call, as `mendwork cost` names it.")],
    usd: Annotated[float, typer.Argument(help="What the provider billed for it, in USD.")],
) -> None:
    """Settle a call that was lost in flight by the provider's bill."""
    from adapters.cli import cost as command
    from adapters.cli.session import run

    run(lambda settings: command.reconcile(settings, call, usd))
