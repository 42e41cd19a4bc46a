"""The subcommands of ``mendwork upgrade``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adapters.settings import Settings

app = typer.Typer(no_args_is_help=True, help="What is under way and which version it needs.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command()
def status(json: Json = False) -> None:
    """Replay every running saga with the code as it is here, and tell which stay with their version and why; code 1
    when one of them cannot go on."""
    import os

    from adapters.cli.session import run
    from adapters.cli.upgrade import telling

    run(lambda settings: telling.status(settings, os.environ, json=json))


@app.command()
def drain(
    version: Annotated[
        str,
        typer.Argument(help="A build id, as `upgrade status` shows it; every version but the current one by default."),
    ] = "",
    timeout: Annotated[float, typer.Option(min=0, help="Come back with code 124 after so many seconds.")] = 0,
    json: Json = False,
) -> None:
    """Wait until nothing needs an older version any more: nothing pinned to one is under way, and this version can
    replay the rest. It only waits: nothing is ended, and Ctrl-C changes nothing."""
    import os

    from adapters.cli.session import run
    from adapters.cli.upgrade import telling
    from adapters.cli.upgrade.deploying import version_here
    from adapters.cli.upgrade.draining import Drain

    def wanted(settings: Settings) -> Drain:
        return Drain(queue=settings.temporal.task_queue, version=version, ours=version_here(settings))

    run(lambda settings: telling.drain(settings, os.environ, wanted(settings), seconds=timeout, json=json))
