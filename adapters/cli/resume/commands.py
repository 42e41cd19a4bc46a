"""The commands about snapshots. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.completing import build_names, model_names, snapshot_tokens
from adapters.cli.config.options import AllowMissing, Approve, Detach, Json, NoDeliver, Unattended, User, Yes

app = typer.Typer()

Models = Annotated[
    list[str] | None,
    typer.Option(help="Ask this model, in every role; may be given again for a chain.", autocompletion=model_names),
]
RoleModels = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=MODEL", help="The same for one role: reasoning, coding, validation."),
]


@app.command()
def snapshots(
    build: Annotated[str, typer.Argument(help="A build's name, as in build-notes-1.", autocompletion=build_names)],
    json: Json = False,
) -> None:
    """List the snapshots of a build, each with the token to go on from it."""
    from adapters.cli.resume import listing as command
    from adapters.cli.session import run

    run(lambda settings: command.snapshots(settings, build, json=json))


@app.command()
def resume(
    token: Annotated[str, typer.Argument(help="A snapshot, as in build-notes-1@2.", autocompletion=snapshot_tokens)],
    model: Models = None,
    role_model: RoleModels = None,
    strategy: Annotated[str, typer.Option(help="Another way of working than the snapshot's.")] = "",
    fork: Annotated[bool, typer.Option("--fork", help="Also beside the build itself, while that is open.")] = False,
    title: Annotated[str, typer.Option(help="One line; the other build's by default.")] = "",
    detach: Detach = False,
    allow_missing: AllowMissing = "",
    yes: Yes = False,
    approve: Approve = "",
    unattended: Unattended = False,
    no_deliver: NoDeliver = False,
    user: User = "",
    json: Json = False,
) -> None:
    """Start a new build that goes on exactly where a snapshot was taken, and follow it."""
    from adapters.cli.resume import resuming as command
    from adapters.cli.session import run

    wanted = command.ResumeWanted(
        token=token,
        models=(*(model or ()), *(role_model or ())),
        role_models=tuple(role_model or ()),
        strategy=strategy,
        fork=fork,
        title=title,
        detach=detach,
        allow_missing=allow_missing,
        approve="plan,change" if yes else approve,
        unattended=unattended,
        deliver=not no_deliver,
        user=user,
        json=json,
    )
    run(lambda settings: command.resume(settings, wanted))


@app.command()
def compare(
    left: Annotated[str, typer.Argument(metavar="A", help="A build's name.", autocompletion=build_names)],
    right: Annotated[
        str,
        typer.Argument(
            metavar="B", help="Another one's: both may go on from the same snapshot.", autocompletion=build_names
        ),
    ],
    diff: Annotated[bool, typer.Option("--diff", help="Print the difference of the two results whole.")] = False,
    json: Json = False,
) -> None:
    """Show two builds side by side: gates, review, cost, time, and what differs between their results."""
    from adapters.cli.resume import comparing as command
    from adapters.cli.session import run

    run(lambda settings: command.compare(settings, command.Pair(left=left, right=right, diff=diff, json=json)))
