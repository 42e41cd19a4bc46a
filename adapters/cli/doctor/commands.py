"""``mendwork doctor`` and ``mendwork version``. Each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.cli.config.options import Json

app = typer.Typer()


@app.command()
def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Cure first what can be cured here: search attributes, store, permissions.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what is there, what is missing, and the one command that cures it; code 1 when anything is not well."""
    import os

    from adapters.cli.doctor import examine
    from adapters.cli.session import here, run_anywhere
    from adapters.settings.secrets import for_people

    async def doctor() -> int:
        try:
            return await examine.doctor(start=here(), environment=for_people(os.environ), repair=fix, json=json)
        finally:
            examine.end_children()

    run_anywhere(doctor)


@app.command()
def version(json: Json = False) -> None:
    """Print the version; with --json also Python's, the Temporal SDK's, and the commit where it is known."""
    from adapters.cli.doctor import versions

    versions.show(json=json)
