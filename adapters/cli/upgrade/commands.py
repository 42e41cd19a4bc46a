"""The subcommands of ``mendwork upgrade``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapters.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Whether what is under way can go on with this version.")


@app.command()
def status(
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Replay every running saga with the code as it is here; code 1 when one of them could not go on."""
    import os

    from adapters.cli.session import run

    run(lambda settings: _status(settings, os.environ, json=json))


async def _status(settings: Settings, environment: Mapping[str, str], *, json: bool) -> int:
    import json as jsonlib
    from dataclasses import asdict

    from adapters.cli.exits import DONE, OWN_FAILURE
    from adapters.cli.lines import plain
    from adapters.cli.session import put, say
    from adapters.cli.upgrade.checking import checked
    from adapters.temporal.connect import connect

    client = await connect(settings, environment)
    found = []
    async for each in checked(client, queue=settings.temporal.task_queue):
        found.append(each)
        if not json:
            put(f"{each.name}  {each.kind}  {each.events} events  {'cannot go on' if each.why else 'goes on'}")
            if each.why:
                say(f"  {plain(each.why)}")
    if json:
        put(jsonlib.dumps({"running": [asdict(each) for each in found]}))
    stuck = [each.name for each in found if each.why]
    if stuck:
        say(f"{len(stuck)} of {len(found)} cannot go on here: {', '.join(stuck)}")
        say("they wait, and lose nothing, until the version that wrote them serves again; `mendwork resume` begins a")
        say("new build of this version from the last snapshot")
    elif not json:
        say(f"{len(found)} under way, all can go on")
    return OWN_FAILURE if stuck else DONE
