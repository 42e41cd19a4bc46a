"""The codec server: decodes, and encodes, payloads for Temporal's web UI and command line. A thread a connection."""

from __future__ import annotations

import json
import socket
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from google.protobuf.json_format import MessageToDict, Parse, ParseError
from temporalio.api.common.v1 import Payloads

from adapters.payloads.codec import EncryptionCodec
from adapters.payloads.door import Door, Refused
from domain.errors import InvalidInput, MendworkError

MOST_BYTES = 16 * 1024 * 1024
"""Of a request's body: more than a whole page of a history, whose messages are at most 4 MB."""
MOST_OF_LOGIN = 4096
MOST_AT_ONCE = 64
PATIENCE_SECONDS = 30
_LOGIN = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Codec server</title>
<form method="post" action="/login"><label>Token <input type="password" name="token" autocomplete="off"></label>
<button>Let this browser decode</button></form>
"""


class CodecServer(ThreadingHTTPServer):
    """Listens as soon as it is made; ``serve_forever`` serves. Raises InvalidInput for an address it cannot have."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * MOST_AT_ONCE  # a web UI asks for many payloads in one moment

    def __init__(self, host: str, port: int, *, door: Door, codec: EncryptionCodec) -> None:
        door.check_host(host)
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), partial(_Handler, door, codec))
        except OSError as error:
            raise InvalidInput(f"[codec]: cannot listen on {host} port {port}: {error.strerror}") from None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """One too many is closed at once; clients try again."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See ThreadingMixIn."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is its client's business; what is in a traceback is nobody's."""
        kind = (sys.exc_info()[0] or Exception).__name__
        sys.stderr.write(f"codec: a connection ended with {kind}\n")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mendwork-codec", ""
    timeout = PATIENCE_SECONDS
    wbufsize = -1  # one packet an answer: the Temporal CLI asks for each payload of a history by itself
    disable_nagle_algorithm = True

    def __init__(self, door: Door, codec: EncryptionCodec, *of_the_server: Any) -> None:
        self._door = door
        self._codec = codec
        super().__init__(*of_the_server)

    def do_OPTIONS(self) -> None:
        """A browser asks whether a page may ask."""
        cross = self._door.cross(self.headers)
        self._answer(204 if "Access-Control-Allow-Origin" in cross else 403)

    def do_GET(self) -> None:
        """Whether it lives, and the page on which a person lets a browser in."""
        if self.path == "/livez":
            self._answer(200, b"ok\n")
        elif self.path == "/login":
            self._answer(200, _LOGIN, kind="text/html; charset=utf-8")
        else:
            self._answer(404, b"known are POST /decode, POST /encode, /login and /livez\n")

    def do_POST(self) -> None:
        """One request. A refusal closes the connection: what follows would be an unread body."""
        try:
            if self.path == "/login":
                self._let_in()
                return
            self._door.admit(self.headers)
            work = self._door.work(self.path, self.headers)
            given = _payloads(self._body())
            done = self._codec.opened(given.payloads) if work == "decode" else self._codec.sealed(given.payloads)
        except Refused as refusal:
            self._refuse(refusal.status, str(refusal))
        except MendworkError as error:
            self._refuse(422, str(error))
        else:
            sys.stderr.write(f"codec: {work} {len(done)} payloads for {self.client_address[0]}\n")
            self._answer(200, json.dumps(MessageToDict(Payloads(payloads=done))).encode(), kind="application/json")

    def _let_in(self) -> None:
        fields = parse_qs(self._body(most=MOST_OF_LOGIN).decode("utf-8", "replace"))
        cookie = self._door.remembered(fields.get("token", [""])[0].strip().encode())
        self._answer(200, b"this browser may decode now\n", more={"Set-Cookie": cookie})

    def _body(self, *, most: int = MOST_BYTES) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(411, "the body's length has to be given in Content-Length")
        if len(length) > 12 or int(length) > most:
            raise Refused(413, f"a body may have at most {most} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "the body ended early")
        return body

    def _refuse(self, status: int, sentence: str) -> None:
        more = {"WWW-Authenticate": 'Bearer realm="mendwork codec"'} if status == 401 else {}
        self._answer(status, f"{sentence}\n".encode(), more={"Connection": "close", **more})

    def _answer(
        self,
        status: int,
        body: bytes = b"",
        *,
        kind: str = "text/plain; charset=utf-8",
        more: dict[str, str] | None = None,
    ) -> None:
        self.send_response(HTTPStatus(status))
        fixed = {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        framing = {"Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'"}
        length = {} if status == 204 else {"Content-Length": str(len(body))}
        for name, value in {**fixed, **framing, **length, **self._door.cross(self.headers), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing that a client chose is logged."""


def _payloads(body: bytes) -> Payloads:
    try:
        return Parse(body.decode(), Payloads(), ignore_unknown_fields=True)
    except (ParseError, ValueError, RecursionError):
        raise Refused(400, "the body is no JSON of Temporal's payloads") from None
