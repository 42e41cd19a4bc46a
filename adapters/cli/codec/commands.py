"""``mendwork codec …``. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()
codec_app = typer.Typer(no_args_is_help=True, help="Encrypt what Temporal stores, and decode it for its UI and CLI.")
app.add_typer(codec_app, name="codec")

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file that is not there yet; it gets mode 0600.")]


@codec_app.command()
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; [codec].host by default.")] = "",
    port: Annotated[int, typer.Option(min=-1, max=65535, help="0 picks a free one; [codec].port by default.")] = -1,
) -> None:
    """Decode for Temporal's web UI and command line until Ctrl-C."""
    from adapters.cli.codec import serving as command
    from adapters.cli.session import run

    run(lambda settings: command.serve(settings, host=host, port=port))


@codec_app.command()
def key(file: NewFile) -> None:
    """Write a new key into a file named ID.key, and print the id."""
    from adapters.cli.codec import serving as command

    command.write(file, kind="key")


@codec_app.command()
def token(file: NewFile) -> None:
    """Write a new token for the codec server into a file."""
    from adapters.cli.codec import serving as command

    command.write(file, kind="token")
