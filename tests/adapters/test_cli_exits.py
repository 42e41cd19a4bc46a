"""The exit codes: one table, which the documents, the help texts and the commands keep to."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import typer

from adapters.cli import exits
from adapters.cli.app import app
from adapters.cli.exits import AUTHENTICATION, DONE, INTERRUPTED, MEANINGS, OWN_FAILURE, TIMEOUT, USAGE, code_of
from adapters.cli.session import within
from adapters.temporal.connect import Target, connect_to
from domain import errors
from domain.errors import InvalidInput, MendworkError, ServerUnavailable
from tests.architecture.sources import ROOT

GRPC_UNAUTHENTICATED, GRPC_PERMISSION_DENIED, GRPC_UNAVAILABLE = b"16", b"7", b"14"


def help_texts(command: Any, name: str = "mendwork") -> Iterator[tuple[str, str]]:
    texts = [command.help or "", command.epilog or "", *(getattr(each, "help", "") or "" for each in command.params)]
    yield name, " ".join(texts)
    for below, child in getattr(command, "commands", {}).items():
        yield from help_texts(child, f"{name} {below}")


def test_every_constant_is_in_the_table_and_every_fault_and_status_leads_into_it() -> None:
    constants = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert constants == set(MEANINGS)
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MendworkError)]
    assert {code_of(kind("no")) for kind in kinds} <= set(MEANINGS)
    assert {exits.exit_code("failed", kind.__name__) for kind in kinds} <= set(MEANINGS)


def test_every_code_that_a_help_text_or_a_document_names_is_in_the_table() -> None:
    texts = [*help_texts(typer.main.get_command(app)), ("README", (ROOT / "README.md").read_text())]
    texts += [(path.name, path.read_text()) for path in (ROOT / "docs").glob("*.md")]
    named = {(int(code), where) for where, text in texts for code in re.findall(r"\bcodes? (\d+)\b", text)}
    assert len(named) > 3
    assert {each for each in named if each[0] not in MEANINGS} == set()


def test_the_readme_lists_no_other_codes() -> None:
    listed = re.search(r"Exit codes: ([^.]*)\.", (ROOT / "README.md").read_text())
    assert listed is not None
    codes = {int(code) for code in re.findall(r"\b(\d+)\s+[a-zM]", listed[1])}
    assert {DONE, USAGE, INTERRUPTED} <= codes <= set(MEANINGS)


def test_the_help_prints_the_whole_table() -> None:
    epilog = typer.main.get_command(app).epilog or ""
    assert all(f"{code} {meaning}" in epilog for code, meaning in MEANINGS.items())


def test_no_command_ends_with_a_bare_number() -> None:
    """A literal in ``typer.Exit`` or ``sys.exit`` would be a code that the table does not know of."""
    found = []
    for path in (ROOT / "adapters" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Exit", "sys.exit", "_exit")):
                numbers = [each for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, int)]
                found += [f"{path.name}:{each.lineno}" for each in numbers]
    assert found == []


async def test_a_command_that_takes_too_long_ends_with_the_code_for_that() -> None:
    async def never() -> int:
        await asyncio.Event().wait()
        return 0

    async def detaching() -> int:
        try:
            return await never()
        except asyncio.CancelledError:
            return INTERRUPTED  # as ``watch`` does: it says that the build goes on

    assert await within(0.01, never()) == TIMEOUT
    assert await within(0.01, detaching()) == TIMEOUT


async def test_a_command_that_ends_in_time_keeps_its_code_and_its_own_errors() -> None:
    async def at_once(code: int) -> int:
        return code

    async def failing() -> int:
        raise TimeoutError("somebody else's")

    assert await within(60, at_once(5)) == 5
    assert await within(0, at_once(0)) == 0
    with pytest.raises(TimeoutError, match="somebody else's"):
        await within(60, failing())


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header(name: bytes, value: bytes) -> bytes:
    """A header of HPACK without any compression."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


@asynccontextmanager
async def refusing(status: bytes) -> AsyncIterator[str]:
    """A gRPC server that answers everything with one status; yields its address."""
    settings, headers, ping = 4, 1, 6
    answer = header(b":status", b"200") + header(b"content-type", b"application/grpc")
    answer += header(b"grpc-status", status) + header(b"grpc-message", b"go-away")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(24)  # the preface
            writer.write(frame(settings, 0, 0))
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                stream = int.from_bytes(head[5:], "big")
                if head[3] == settings and not head[4] & 1:
                    writer.write(frame(settings, 1, 0))
                elif head[3] == ping and not head[4] & 1:
                    writer.write(frame(ping, 1, 0, payload))
                elif head[3] == headers:
                    writer.write(frame(headers, 0x5, stream, answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (GRPC_UNAUTHENTICATED, AUTHENTICATION),
        (GRPC_PERMISSION_DENIED, AUTHENTICATION),
        (GRPC_UNAVAILABLE, OWN_FAILURE),
    ],
)
async def test_a_server_that_refuses_our_credentials_has_a_code_of_its_own(status: bytes, code: int) -> None:
    async with refusing(status) as address:
        with pytest.raises(ServerUnavailable) as raised:
            await connect_to(Target(address=address, namespace="default", origin="a test"), patience=5)
    assert code_of(raised.value) == code, str(raised.value)


def test_other_mistakes_keep_theirs() -> None:
    assert code_of(InvalidInput("status: Unauthenticated is not what it says")) == USAGE
    assert code_of(ServerUnavailable("no answer")) == OWN_FAILURE
