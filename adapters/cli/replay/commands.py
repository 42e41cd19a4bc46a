"""The command ``replay``."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.completing import phase_names, task_names
from adapters.cli.config.options import AllowMissing, BuildAlone, Json

app = typer.Typer()


@app.command()
def replay(
    build: BuildAlone,
    phase: Annotated[
        str,
        typer.Option(help="The phase to run again: intake, plan, tasks, review, land, …", autocompletion=phase_names),
    ] = "",
    task: Annotated[
        str, typer.Option(help="Only the sagas of this task, each on the base that it had.", autocompletion=task_names)
    ] = "",
    round: Annotated[int, typer.Option(min=1, help="Which time the build came to the phase.")] = 1,
    live: Annotated[bool, typer.Option("--live", help="Call the models; say what differs, and do not mind.")] = False,
    budget: Annotated[float, typer.Option(help="With --live: at most so many USD.")] = 0.0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch world and say where it is.")] = False,
    allow_missing: AllowMissing = "",
    json: Json = False,
) -> None:
    """Run one phase of a build again from its record, in a scratch world: equal, or the first digest that differs."""
    from adapters.cli.replay import replay as command
    from adapters.cli.session import run

    wanted = command.ReplayWanted(
        build=build,
        phase=phase,
        task=task,
        round=round,
        live=live,
        budget=budget,
        keep=keep,
        json=json,
        allow_missing=tuple(word.strip() for word in allow_missing.split(",") if word.strip()),
    )
    run(lambda settings: command.replay(settings, wanted))
