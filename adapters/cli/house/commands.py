"""The commands of the house. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.completing import project_names
from adapters.cli.config.options import Json

app = typer.Typer()


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would go.")] = False,
    project: Annotated[str, typer.Option(help="Only what is of this project.", autocompletion=project_names)] = "",
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Make the reference table again from the log first.")
    ] = False,
    json: Json = False,
) -> None:
    """Take away what no build, snapshot or release needs any more, by each project's retention."""
    from adapters.cli.house import sweep
    from adapters.cli.session import run

    wanted = sweep.GcWanted(dry_run=dry_run, project=project, afresh=afresh, json=json)
    run(lambda settings: sweep.collect(settings, wanted))


@app.command()
def disk(json: Json = False) -> None:
    """Show what lies on the disk: by build, by project, by kind."""
    from adapters.cli.house import disk as command
    from adapters.cli.session import run

    run(lambda settings: command.disk(settings, json=json))
