"""``mendwork target``: what the local target runs on this machine; ending it, and bringing it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from adapters.cli.config.options import Json

if TYPE_CHECKING:
    from adapters.settings import Settings
    from adapters.target.local.overview import Overview, SiteLine

target_app = typer.Typer(no_args_is_help=True, help="What the local deploy target runs on this machine.")


@target_app.command()
def status(json: Json = False) -> None:
    """Show the sites, where their traffic goes, and what runs."""
    from adapters.cli.session import run

    run(lambda settings: show(settings, json=json))


@target_app.command()
def stop() -> None:
    """End everything that serves: releases, proxies and their supervisor. Nothing is removed."""
    from adapters.cli.session import run

    run(stop_serving)


@target_app.command()
def start() -> None:
    """Bring back what served before."""
    from adapters.cli.session import run

    run(start_serving)


async def show(settings: Settings, *, json: bool) -> int:
    """Nothing is started or changed; always 0."""
    import asyncio

    from adapters.cli.session import put
    from adapters.target.local.adapter import open_local
    from adapters.target.local.overview import overview

    seen = await asyncio.to_thread(overview, open_local(settings.state))
    if json:
        from dataclasses import asdict
        from json import dumps

        put(dumps(asdict(seen)))
    else:
        put("\n".join(_lines(seen)))
    return 0


async def stop_serving(settings: Settings) -> int:
    """0 when nothing is left."""
    import asyncio

    from adapters.cli.session import say
    from adapters.target.local.adapter import open_local
    from adapters.target.local.overview import stop_all

    ended = await asyncio.to_thread(stop_all, open_local(settings.state))
    say(f"{ended} programs ended; bring them back with: mendwork target start" if ended else "nothing was running")
    return 0


async def start_serving(settings: Settings) -> int:
    """0 when the supervisor runs; it starts the rest."""
    import asyncio

    from adapters.cli.session import say
    from adapters.target.local.adapter import open_local
    from adapters.target.local.overview import start_all

    pid = await asyncio.to_thread(start_all, open_local(settings.state))
    say(f"the supervisor runs, pid {pid}, and starts what it had; see: mendwork target status")
    return 0


def still_serving(settings: Settings) -> list[str]:
    """Where it serves what outlives Mendwork, and what ends it; nothing where nothing does."""
    from adapters.target.local.adapter import open_local
    from adapters.target.local.overview import overview
    from domain.errors import MendworkError

    try:
        seen = overview(open_local(settings.state))
    except (OSError, MendworkError) as error:
        return [f"what still serves cannot be told ({error}); see: mendwork target status"]
    live = [site for site in seen.sites if seen.supervisor and site.live]
    listed = ", ".join(f"{site.project} ({site.environment}) at {site.url}" for site in live)
    return [f"still serving: {listed}; end it with: mendwork target stop"] if live else []


def _lines(seen: Overview) -> list[str]:
    running = f"supervisor  pid {seen.supervisor}" if seen.supervisor else "supervisor  does not run"
    return [running, *(line for site in seen.sites for line in _site(site))]


def _site(site: SiteLine) -> list[str]:
    live = f"release {site.live}" if site.live else "no release"
    lines = [f"{site.project}  {site.environment}  {live}  {site.url or 'no address yet'}"]
    for unit in site.units:
        mark = "  live" if unit.live else ""
        pid = f"pid {unit.pid}" if unit.pid else "no process"
        lines.append(f"  release {unit.release}  {unit.state}  {pid}  port {unit.port}  uid {unit.uid}{mark}")
    return lines
