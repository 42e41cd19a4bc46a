"""The commands of the configuration. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from adapters.cli.config.options import Json

app = typer.Typer()
config = typer.Typer(no_args_is_help=True, help="The configuration as it counts: file, environment, defaults.")
app.add_typer(config, name="config")


class Shell(StrEnum):
    """Those whose completion is known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShowOrigin = Annotated[
    bool, typer.Option("--show-origin", help="Also where each comes from: default, file:line, a variable's name.")
]


@config.command("list")
def list_values(show_origin: ShowOrigin = False, json: Json = False) -> None:
    """Print every effective value; secrets and passwords are masked."""
    import os

    from adapters.cli.config import listing
    from adapters.cli.session import here, run_anywhere
    from adapters.settings.secrets import for_people

    run_anywhere(
        lambda: listing.show_all(start=here(), environment=for_people(os.environ), show_origin=show_origin, json=json)
    )


@config.command()
def get(
    key: Annotated[str, typer.Argument(help="As `config list` prints it: temporal.port, or a whole section.")],
    show_origin: ShowOrigin = False,
    json: Json = False,
) -> None:
    """Print one effective value, or all of a section."""
    import os

    from adapters.cli.config import listing
    from adapters.cli.session import here, run_anywhere
    from adapters.settings.secrets import for_people

    run_anywhere(
        lambda: listing.show_one(
            key, start=here(), environment=for_people(os.environ), show_origin=show_origin, json=json
        )
    )


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Whose completion to print.")]) -> None:
    """Print the shell's completion: source <(mendwork completion bash); `--install-completion` does so for good."""
    from typer._completion_shared import get_completion_script  # of which typer.completion gives only options

    from adapters.cli.session import put

    put(get_completion_script(prog_name="mendwork", complete_var="_MENDWORK_COMPLETE", shell=shell.value))
