"""The HTTP side: a real socket on loopback, a thread per connection, one request each."""

from __future__ import annotations

import contextlib
import hmac
import json
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from adapters.models.scripted.bill import Bill, BillLine
from adapters.models.scripted.call import BadCall, Call, read_call
from adapters.models.scripted.reply import Reply, error_body, scripted_reply
from adapters.models.scripted.script import Script, load_script

MAX_REQUEST_BYTES = 64 * 1024 * 1024
_HANG_CHECK_SECONDS = 0.1


class Desk:
    """Chooses replies and writes the bill, one call at a time."""

    def __init__(self, script: Script, bill: Bill, *, required_key: str = "") -> None:
        self._script = script
        self._bill = bill
        self._authorization = f"Bearer {required_key}".encode() if required_key else b""
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    def admits(self, authorization: str) -> bool:
        """Whether the request brings the key that is asked for."""
        return not self._authorization or hmac.compare_digest(authorization.encode(), self._authorization)

    def reply(self, body: bytes, key: str) -> Reply:
        """The reply to a chat completion; it is on the bill when this returns."""
        try:
            call = read_call(body, key)
        except BadCall as error:
            return Reply(status=400, body=error_body(str(error)))
        found = self._script.find(call)
        if found is None:
            place = f"{call.role}/{next(iter(call.tasks), '*')}/{call.attempt}, turn {call.turn}"
            message = f"no scripted answer for {place}; known: {self._script.places()}"
            return Reply(status=404, body=error_body(message, code="no_scripted_answer"))
        entry, text = found
        with self._lock:
            faults = entry.faults_of(call.turn)
            played = self._bill.faults_played(call.key)
            fault = faults[played] if played < len(faults) else None
            reply = scripted_reply(call, entry, text, fault)
            self._bill.append(_line(call, entry.task, fault.kind if fault else "", reply.tokens))
        return reply


def _line(call: Call, task: str | None, fault: str, tokens: tuple[int, int]) -> BillLine:
    return BillLine(
        key=call.key,
        role=call.role,
        task=task or next(iter(call.tasks), ""),
        model=call.model,
        fault=fault,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        at=datetime.now(UTC).isoformat(),
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def __init__(self, desk: Desk, *socket: Any) -> None:
        self._desk = desk
        super().__init__(*socket)

    def do_GET(self) -> None:
        if self.path.rstrip("/") != "/v1/models":
            return self._send(Reply(status=404, body=error_body("only /v1/models and /v1/chat/completions are here")))
        known = {
            "object": "list",
            "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "mendwork"}],
        }
        return self._send(Reply(status=200, body=json.dumps(known).encode()))

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return self._send(Reply(status=413, body=error_body("the request is too large or has no length")))
        if self.path.rstrip("/") != "/v1/chat/completions":
            return self._send(Reply(status=404, body=error_body("only /v1/models and /v1/chat/completions are here")))
        if not self._desk.admits(self.headers.get("Authorization", "")):
            message = "Incorrect API key provided."
            return self._send(Reply(status=401, body=error_body(message, code="invalid_api_key")))
        return self._send(self._desk.reply(body, self.headers.get("X-Mendwork-Key", "")))

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_REQUEST_BYTES:
            return None
        return self.rfile.read(int(length))

    def _send(self, reply: Reply) -> None:
        self.close_connection = True
        if reply.manner == "hang":
            return self._hang()
        self._desk.stopping.wait(reply.wait)
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", "Connection": "close", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.manner == "cut" else reply.body)
        return None

    def _hang(self) -> None:
        """Not a byte until the client gives up."""
        self.connection.settimeout(_HANG_CHECK_SECONDS)
        while not self._desk.stopping.is_set():
            with contextlib.suppress(TimeoutError):  # nothing came, and it is still there
                if not self.connection.recv(1):
                    return

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the bill is the log."""


class _Sockets(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # fifty callers at once are served, not told to knock again in a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class ScriptedServer:
    """Serves ``answers`` (a YAML file) and keeps ``bill`` (JSON lines) while its context is open; port 0 picks one.

    Raises InvalidInput for a file that cannot be used, OSError for a port that is taken.
    """

    def __init__(self, answers: Path, bill: Path, *, port: int = 0, required_key: str = "") -> None:
        script = load_script(answers)
        self._bill = Bill(bill)
        self._desk = Desk(script, self._bill, required_key=required_key)
        try:
            self._sockets = _Sockets(("127.0.0.1", port), partial(_Handler, self._desk))
        except OSError:
            self._bill.close()
            raise
        self._thread = threading.Thread(target=self._sockets.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def base_url(self) -> str:
        """What a model's ``base_url`` is set to."""
        return f"http://127.0.0.1:{self._sockets.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._desk.stopping.set()
        self._sockets.shutdown()
        self._thread.join()
        self._sockets.server_close()
        self._bill.close()
