"""``mendwork codec serve | key | token``."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import typer

from adapters.cli.exits import USAGE
from adapters.cli.session import put, say
from adapters.payloads.keys import load_keys, new_key, new_token, read_token
from adapters.settings import Settings
from domain.errors import InvalidInput


async def serve(settings: Settings, *, host: str, port: int) -> int:
    """Until SIGINT or SIGTERM; prints its URL on stdout when it listens. Raises InvalidInput."""
    from adapters.payloads.codec import EncryptionCodec
    from adapters.payloads.door import Door
    from adapters.payloads.server import CodecServer
    from adapters.temporal.connect import namespace_of

    keys = load_keys(settings.key_files)
    if not keys:
        raise InvalidInput("[encryption].keys names no key: nothing is encrypted, so there is nothing to decode")
    ours = settings.codec
    namespace = namespace_of(settings, os.environ)
    token = read_token(settings.root / ours.token_file) if ours.token_file else b""
    door = Door(namespace=namespace, token=token, origins=ours.origins)
    codec = EncryptionCodec(keys, namespace=namespace)
    with CodecServer(host or ours.host, ours.port if port < 0 else port, door=door, codec=codec) as server:
        put(server.url)
        asks = "asks for the token" if token else "asks for no token: every user of this machine can read all of it"
        say(f"decodes for namespace {namespace} with keys {', '.join(key.id for key in keys)}; {asks}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        await _stop_signal()
        await asyncio.to_thread(server.shutdown)
        thread.join()
    return 0


def write(file: Path, *, kind: str) -> None:
    """A new key or token. Exits with the code for a bad file."""
    try:
        if kind == "key":
            put(new_key(file))
        else:
            new_token(file)
            say(f"{file} holds a new token")
    except InvalidInput as error:
        say(f"mendwork: {error}")
        raise typer.Exit(USAGE) from None


async def _stop_signal() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
