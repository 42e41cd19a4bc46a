"""Options and arguments of several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.completing import build_names

Build = Annotated[
    str,
    typer.Argument(help="The name of a build, as in build-notes-1, or of a delivery.", autocompletion=build_names),
]
BuildAlone = Annotated[str, typer.Argument(help="The build's name, as in build-notes-1.", autocompletion=build_names)]
Json = Annotated[bool, typer.Option("--json", help="Print stable JSON on stdout.")]
By = Annotated[str, typer.Option("--by", help="Who says it; your login name by default.")]
Reason = Annotated[str, typer.Option(help="Why, for the log.")]

Detach = Annotated[bool, typer.Option("--detach", help="Print the build's name and come back at once.")]
AllowMissing = Annotated[str, typer.Option(help="Isolations to do without on this machine: memory,pids.")]
Yes = Annotated[bool, typer.Option("--yes", help="Approve the plan and the change beforehand.")]
Approve = Annotated[str, typer.Option(help="Approve beforehand: plan,change,release.")]
Unattended = Annotated[bool, typer.Option("--unattended", help="Nobody answers: skip what is stuck.")]
NoDeliver = Annotated[bool, typer.Option("--no-deliver", help="Land the result, and do not deliver it.")]
User = Annotated[str, typer.Option(help="Who pays; your login name by default.")]
