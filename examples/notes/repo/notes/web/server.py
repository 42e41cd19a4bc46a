"""The socket side: reads requests, writes responses, and stops without dropping one that is being answered."""

from __future__ import annotations

import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from urllib.parse import parse_qs, unquote, urlsplit

from notes.errors import BodyTooLarge, MalformedRequest, ServiceError
from notes.web.messages import Request, Response
from notes.web.routing import Router

MAX_BODY_BYTES = 256 * 1024
IDLE_SECONDS = 15.0

log = logging.getLogger("notes.web")


class WebServer(ThreadingHTTPServer):
    """Serves one router, a thread per connection."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], router: Router):
        self.router = router
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        self._draining = threading.Event()
        super().__init__(address, _RequestHandler)

    def server_bind(self) -> None:
        # HTTPServer would ask the name service for this machine's name, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    def drain(self) -> None:
        """Stop accepting, let what is being answered finish, and return when the last connection is closed.

        Call it from another thread than the one in ``serve_forever``.
        """
        self._draining.set()
        self.shutdown()
        with self._connections_lock:
            for connection in self._connections:
                _stop_reading(connection)
        self.server_close()

    def connection_opened(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.add(connection)
        if self.draining:
            _stop_reading(connection)

    def connection_closed(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.discard(connection)

    def handle_error(self, request: object, client_address: object) -> None:
        log.warning("connection lost", extra={"data": {"client": client_address}}, exc_info=True)


def _stop_reading(connection: socket.socket) -> None:
    # An idle keep-alive connection wakes up with end-of-file; a response that is being written is not disturbed.
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        log.debug("connection was gone already")


def _error_response(error: ServiceError) -> Response:
    return Response.of_json(error.as_json(), status=error.status, headers=error.headers)


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "notes"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    server: WebServer

    def setup(self) -> None:
        super().setup()
        self.server.connection_opened(self.connection)

    def finish(self) -> None:
        self.server.connection_closed(self.connection)
        super().finish()

    def _serve(self) -> None:
        started = time.monotonic()
        response = self._answer()
        self._write(response)
        log.info(
            "request",
            extra={
                "data": {
                    "method": self.command,
                    "path": urlsplit(self.path).path,
                    "status": response.status,
                    "milliseconds": round((time.monotonic() - started) * 1000, 1),
                }
            },
        )

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self) -> Response:
        try:
            return self.server.router.dispatch(self._request())
        except ServiceError as error:
            return _error_response(error)
        except (TimeoutError, ConnectionError):
            raise
        except Exception:
            log.exception("request failed", extra={"data": {"method": self.command}})
            return _error_response(ServiceError("something went wrong on our side"))

    def _request(self) -> Request:
        body = self._body()
        parts = urlsplit(self.path)
        try:
            query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=50, errors="strict")
            path = unquote(parts.path, errors="strict")
        except ValueError as error:
            raise MalformedRequest("the address cannot be read") from error
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, path, query, headers, body)

    def _body(self) -> bytes:
        # Whatever is refused here stays unread on the connection, so that it cannot serve another request.
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise MalformedRequest("the body must come with a Content-Length")
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            self.close_connection = True
            raise MalformedRequest("the Content-Length is not a number")
        if len(text) > 9 or int(text) > MAX_BODY_BYTES:
            self.close_connection = True
            raise BodyTooLarge(f"the body has more than {MAX_BODY_BYTES} bytes")
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            self.close_connection = True
            raise MalformedRequest("the body ended too early")
        return body

    def _write(self, response: Response) -> None:
        if self.server.draining:
            self.close_connection = True
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Length", str(len(response.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself, such as a request line that it cannot read."""
        self.close_connection = True
        text = message or self.responses.get(code, ("unknown error", ""))[0]
        self._write(Response.of_json({"error": {"code": "malformed_request", "message": text}}, status=code))

    def log_message(self, format: str, *args: object) -> None:
        log.info("protocol", extra={"data": {"detail": format % args}})
