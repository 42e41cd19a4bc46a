"""The commands. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli import books
from adapters.cli.codec import commands as codecs
from adapters.cli.config import commands as configurations
from adapters.cli.config.completing import build_names, phase_names, project_names, task_names
from adapters.cli.config.options import Approve, Build, Detach, Json, NoDeliver, Unattended, User, Yes
from adapters.cli.decide import commands as decisions
from adapters.cli.doctor import commands as doctors
from adapters.cli.exits import MEANINGS
from adapters.cli.house import commands as house
from adapters.cli.init import commands as beginnings
from adapters.cli.release import commands as deliveries
from adapters.cli.replay import commands as replays
from adapters.cli.resume import commands as resumes
from adapters.cli.upgrade import commands as upgrades

app = typer.Typer(
    name="mendwork",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + ".",
)


def _version(wanted: bool) -> None:
    if wanted:
        from adapters.cli.doctor.versions import release
        from adapters.cli.session import put

        put(release())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Build software with language models, and recover from what goes wrong."""


@app.command()
def dev() -> None:
    """Run Temporal's development server and all workers until Ctrl-C."""
    import os

    from adapters.cli import dev as command
    from adapters.cli.session import run

    run(lambda settings: command.run_dev(settings, environment=os.environ))


@app.command()
def build(
    spec: Annotated[str, typer.Argument(help="A file with the feature's specification, or - for standard input.")],
    project: Annotated[
        str,
        typer.Option(help="A project of mendwork.toml; not needed where there is one.", autocompletion=project_names),
    ] = "",
    title: Annotated[str, typer.Option(help="One line; the spec's first by default.")] = "",
    detach: Detach = False,
    allow_missing: Annotated[str, typer.Option(help="Isolations to do without here: memory,pids,network.")] = "",
    yes: Yes = False,
    approve: Approve = "",
    unattended: Unattended = False,
    no_deliver: NoDeliver = False,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan, and tell what the rest would take.")] = False,
    tags: Annotated[str, typer.Option(help="Words to find it by in Temporal's lists: ui,urgent.")] = "",
    json: Json = False,
) -> None:
    """Start a build and follow it. On a terminal it asks there; Ctrl-C detaches and leaves it running."""
    from adapters.cli import build as command
    from adapters.cli.session import run

    asked = command.Asked(
        spec=spec,
        project=project,
        title=title,
        detach=detach,
        json=json,
        allow_missing=allow_missing,
        approve="plan,change" if yes else approve,
        unattended=unattended,
        user=user,
        deliver=not no_deliver,
        dry_run=dry_run,
        tags=tags,
    )
    run(lambda settings: command.start(settings, asked))


@app.command()
def watch(
    build: Build,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Come back with code 7 when only a person helps.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Come back with code 124 after so many seconds.")] = 0,
    json: Json = False,
) -> None:
    """Follow a build to its end; its exit code is the build's."""
    from adapters.cli import follow as command
    from adapters.cli.session import run, within

    run(lambda settings: within(timeout, command.watch(settings, build, json=json, wait=not no_wait)))


@app.command()
def status(
    build: Annotated[
        str, typer.Argument(help="A build's name; without it, the newest builds.", autocompletion=build_names)
    ] = "",
    project: Annotated[str, typer.Option(help="Only builds of this project.", autocompletion=project_names)] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many builds.")] = 20,
    json: Json = False,
) -> None:
    """Show builds and deliveries from the store, also when no worker answers."""
    from adapters.cli import status as command
    from adapters.cli.session import run

    if build:
        run(lambda settings: command.one(settings, build, json=json))
    run(lambda settings: command.many(settings, project=project, limit=limit, json=json))


@app.command()
def show(
    build: Build,
    task: Annotated[str, typer.Option(help="One task of the plan.", autocompletion=task_names)] = "",
    attempt: Annotated[int, typer.Option(min=0, help="One attempt of the task; its last by default.")] = 0,
    diff: Annotated[bool, typer.Option("--diff", help="The change as a unified diff.")] = False,
    log: Annotated[bool, typer.Option("--log", help="What the tests printed.")] = False,
    phase: Annotated[str, typer.Option(help="The build's own calls: plan or review.", autocompletion=phase_names)] = "",
    prompt: Annotated[bool, typer.Option("--prompt", help="What a model was asked.")] = False,
    answer: Annotated[bool, typer.Option("--answer", help="What a model answered.")] = False,
    packet: Annotated[str, typer.Option(metavar="ASK", help="What a person was shown, by the ask or its digest.")] = "",
    json: Json = False,
) -> None:
    """Show what a build did: its tasks, attempts and faults; a diff, a test log, a prompt, an answer, a packet."""
    from adapters.cli import show as command
    from adapters.cli.session import run

    wanted = command.Wanted(
        build=build,
        task=task,
        attempt=attempt,
        diff=diff,
        log=log,
        json=json,
        phase=phase,
        prompt=prompt,
        answer=answer,
        packet=packet,
    )
    run(lambda settings: command.show(settings, wanted))


app.add_typer(beginnings.app)
app.add_typer(decisions.app)
app.add_typer(books.app)
app.add_typer(deliveries.app)
app.add_typer(replays.app)
app.add_typer(resumes.app)
app.add_typer(house.app)
app.add_typer(upgrades.app, name="upgrade")
app.add_typer(codecs.app)
app.add_typer(configurations.app)
app.add_typer(doctors.app)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def target(context: typer.Context) -> None:
    """Look at the local target's own programs, stop them, start them."""
    from adapters.cli.release.target import target_app

    target_app(context.args, prog_name="mendwork target")
