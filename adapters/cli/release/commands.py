"""The commands of deliveries. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.completing import project_names, release_numbers
from adapters.cli.config.options import AllowMissing, By, Json

app = typer.Typer()
releases = typer.Typer(no_args_is_help=True, help="The releases of a project.")
app.add_typer(releases, name="release")

Project = Annotated[
    str,
    typer.Option(
        help="A project of mendwork.toml; not needed where only one has a target.", autocompletion=project_names
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the delivery's name and come back at once.")]


@app.command()
def deliver(
    commit: Annotated[str, typer.Argument(help="A branch or a commit of the project's repository.")],
    project: Project = "",
    yes: Annotated[bool, typer.Option("--yes", help="Approve the release beforehand.")] = False,
    approve: Annotated[str, typer.Option(help="Approve beforehand: release.")] = "",
    allow_missing: AllowMissing = "",
    unattended: Annotated[
        bool, typer.Option("--unattended", help="Nobody answers: what would be asked ends it.")
    ] = False,
    detach: Detach = False,
    by: By = "",
    json: Json = False,
) -> None:
    """Deliver a commit to the project's target and follow it. Ctrl-C detaches and leaves it running."""
    from adapters.cli.release import deliver as command
    from adapters.cli.session import run

    wanted = command.Wanted(
        commit=commit,
        project=project,
        approve="release" if yes else approve,
        allow_missing=allow_missing,
        unattended=unattended,
        detach=detach,
        json=json,
        by=by,
    )
    run(lambda settings: command.deliver(settings, wanted))


@app.command()
def rollback(
    release: Annotated[
        int,
        typer.Argument(
            min=1, help="The number of the release that production is to lose.", autocompletion=release_numbers
        ),
    ],
    project: Project = "",
    to: Annotated[
        int,
        typer.Option(
            min=0, help="The release to go back to; the one before by default.", autocompletion=release_numbers
        ),
    ] = 0,
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    detach: Detach = False,
    by: By = "",
    json: Json = False,
) -> None:
    """Take a release out of production: traffic, release and configuration go back to an older one."""
    from adapters.cli.release import rollback as command
    from adapters.cli.session import run

    back = command.Back(
        release=release, project=project, to=to, reason=reason, by=by, yes=yes, detach=detach, json=json
    )
    run(lambda settings: command.rollback(settings, back))


@app.command()
def lane(
    project: Annotated[str, typer.Argument(help="A project of mendwork.toml.", autocompletion=project_names)],
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="End the freeze after a rollback.")] = False,
    reason: Annotated[str, typer.Option(help="What was found out; needed to acknowledge.")] = "",
    by: By = "",
    json: Json = False,
) -> None:
    """Show who delivers a project now, who waits, and whether its lane is frozen."""
    from adapters.cli.release import lane as command
    from adapters.cli.session import run

    wanted = command.LaneWanted(project=project, acknowledge=acknowledge, reason=reason, by=by, json=json)
    run(lambda settings: command.lane(settings, wanted))


@releases.command("list")
def list_releases(
    project: Annotated[str, typer.Option(help="Only releases of this project.", autocompletion=project_names)] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many of a project.")] = 20,
    json: Json = False,
) -> None:
    """List the releases, newest first."""
    from adapters.cli.release import releases as command
    from adapters.cli.session import run

    run(lambda settings: command.many(settings, project=project, limit=limit, json=json))


@releases.command()
def show(
    number: Annotated[int, typer.Argument(min=1, help="The release's number.", autocompletion=release_numbers)],
    project: Annotated[
        str,
        typer.Option(
            help="A project of mendwork.toml; not needed where only one delivered.", autocompletion=project_names
        ),
    ] = "",
    open_: Annotated[bool, typer.Option("--open", help="Write a page with its report, and show it.")] = False,
    json: Json = False,
) -> None:
    """Show the record of a release: versions, approvals, risk, verdicts, figures, timings, what was left behind."""
    from adapters.cli.release import releases as command
    from adapters.cli.session import run

    shown = command.Shown(number=number, project=project, json=json, open=open_)
    run(lambda settings: command.one(settings, shown))
