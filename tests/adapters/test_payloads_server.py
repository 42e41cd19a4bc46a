"""The codec server over real sockets: who is served, what is refused in one sentence, and what browsers are told."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from temporalio.api.common.v1 import Payload, Payloads

from adapters.payloads.codec import EncryptionCodec
from adapters.payloads.door import Door, Refused, is_loopback
from adapters.payloads.keys import Key
from adapters.payloads.server import MOST_BYTES, CodecServer
from domain.errors import InvalidInput

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is to be refused
KEY = Key(id="2026a", secret=b"k" * 32)
TOKEN = b"a-token-of-some-length"
BEARER = {"Authorization": f"Bearer {TOKEN.decode()}"}
UI = "http://localhost:8233"
CODEC = EncryptionCodec((KEY,), namespace="default")
HELLO = Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')


def as_json(*payloads: Payload) -> bytes:
    return json.dumps(MessageToDict(Payloads(payloads=payloads))).encode()


PLAIN, SEALED = as_json(HELLO), as_json(*CODEC.sealed([HELLO]))


class Asked:
    """An answer: its status, its text, its headers."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.text = answer.read().decode()


class Client:
    """Asks one server; a connection each."""

    def __init__(self, server: CodecServer) -> None:
        self.host, self.port = str(server.server_address[0]), int(server.server_address[1])

    def ask(self, path: str, body: bytes = SEALED, /, *, method: str = "POST", **headers: str) -> Asked:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, path, body if method == "POST" else None, {**BEARER, **headers})
            return Asked(connection.getresponse())
        finally:
            connection.close()

    def raw(self, text: bytes) -> bytes:
        """What comes back for bytes as they stand, to the connection's end."""
        with socket.create_connection((self.host, self.port), timeout=20) as connection:
            connection.sendall(text)
            with suppress(OSError):  # it may be closed to what was not read yet
                connection.shutdown(socket.SHUT_WR)
            parts = iter(lambda: connection.recv(65536), b"")
            return b"".join(parts)


@contextmanager
def served(door: Door, *, codec: EncryptionCodec = CODEC, host: str = "127.0.0.1") -> Iterator[Client]:
    with CodecServer(host, 0, door=door, codec=codec) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def codec() -> Iterator[Client]:
    with served(Door(namespace="default", token=TOKEN, origins=(UI,))) as client:
        yield client


class TestCoding:
    def test_what_was_encrypted_is_decoded(self, codec: Client) -> None:
        answer = codec.ask("/decode")
        assert (answer.status, json.loads(answer.text)) == (200, json.loads(PLAIN))
        assert answer.headers["Cache-Control"] == "no-store"

    def test_what_is_encoded_is_decoded_again(self, codec: Client) -> None:
        encoded = codec.ask("/encode", PLAIN)
        assert "hello" not in encoded.text
        assert json.loads(encoded.text)["payloads"][0]["metadata"]["encryption-key-id"] == "MjAyNmE="
        assert json.loads(codec.ask("/decode", encoded.text.encode()).text) == json.loads(PLAIN)

    def test_both_are_there_under_the_namespace(self, codec: Client) -> None:
        assert codec.ask("/default/decode").status == codec.ask("/default/encode", PLAIN).status == 200
        assert codec.ask("/default/decode", **{"X-Namespace": "default"}).status == 200

    def test_many_payloads_keep_their_order(self, codec: Client) -> None:
        many = [Payload(metadata={"encoding": b"json/plain"}, data=str(number).encode()) for number in range(300)]
        answer = codec.ask("/decode", as_json(*CODEC.sealed(many[:150]), *many[150:]))
        assert json.loads(answer.text) == json.loads(as_json(*many))

    def test_none_are_none(self, codec: Client) -> None:
        assert json.loads(codec.ask("/decode", b"{}").text) == {}

    def test_a_connection_serves_one_request_after_the_other(self, codec: Client) -> None:
        connection = http.client.HTTPConnection(codec.host, codec.port, timeout=20)
        try:
            for _ in range(3):
                connection.request("POST", "/decode", SEALED, BEARER)
                answer = connection.getresponse()
                assert (answer.status, json.loads(answer.read())) == (200, json.loads(PLAIN))
        finally:
            connection.close()


class TestRefusing:
    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            TOKEN.decode(),
            f"Basic {TOKEN.decode()}",
            "Bearer \xfc\xfc",
            "Bearer a b",
        ],
    )
    def test_whoever_does_not_bring_the_token(self, codec: Client, header: str) -> None:
        answer = codec.ask("/decode", Authorization=header)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="mendwork codec"')
        assert answer.text == "a bearer token is needed, the one in [codec].token_file\n"

    def test_another_namespace(self, codec: Client) -> None:
        sentence = "this codec server is for the namespace default alone\n"
        for answer in (codec.ask("/elsewhere/decode"), codec.ask("/decode", **{"X-Namespace": "elsewhere"})):
            assert (answer.status, answer.text) == (403, sentence)
        assert codec.ask("/default/decode", **{"X-Namespace": "elsewhere"}).status == 403

    @pytest.mark.parametrize("path", ["/", "/nothing", "/a/b/decode", "/decode/more", "//decode/../decode"])
    def test_another_path(self, codec: Client, path: str) -> None:
        assert codec.ask(path).status == 404

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "TRACE"])
    def test_another_method(self, codec: Client, method: str) -> None:
        assert codec.ask("/decode", method=method).status in (404, 501)

    @pytest.mark.parametrize("body", [b"", b"x", b"7", b"\xff", b'{"payloads": 1}', b"[" * 100_000])
    def test_what_are_no_payloads(self, codec: Client, body: bytes) -> None:
        answer = codec.ask("/decode", body)
        assert (answer.status, answer.text) == (400, "the body is no JSON of Temporal's payloads\n")

    def test_a_body_that_is_too_large_before_it_is_read(self, codec: Client) -> None:
        head = f"POST /decode HTTP/1.1\r\nAuthorization: Bearer {TOKEN.decode()}\r\nContent-Length: {{}}\r\n\r\n"
        for length in (MOST_BYTES + 1, 10**30, "0" * 5000 + "1"):
            assert codec.raw(head.format(length).encode()).startswith(b"HTTP/1.1 413 ")
        for length in ("-1", "", "x", "1e3", "\u0661"):
            assert codec.raw(head.format(length).encode()).startswith(b"HTTP/1.1 411 ")

    def test_a_body_that_ends_early(self, codec: Client) -> None:
        head = f"POST /decode HTTP/1.1\r\nAuthorization: Bearer {TOKEN.decode()}\r\nContent-Length: 10\r\n\r\n{{}}"
        assert b"the body ended early" in codec.raw(head.encode())

    def test_a_key_that_it_lacks_by_its_id(self, codec: Client) -> None:
        foreign = EncryptionCodec((Key(id="2019", secret=b"x" * 32),), namespace="default").sealed([HELLO])
        answer = codec.ask("/decode", as_json(*foreign))
        assert answer.status == 422
        assert answer.text == "a payload is encrypted with key '2019', which [encryption].keys lacks; known: 2026a\n"

    def test_a_payload_that_somebody_changed(self, codec: Client) -> None:
        (sealed,) = CODEC.sealed([HELLO])
        sealed.data = sealed.data[:-1] + bytes([sealed.data[-1] ^ 1])
        answer = codec.ask("/decode", as_json(sealed))
        assert (answer.status, "does not decrypt" in answer.text) == (422, True)

    def test_what_is_no_http_at_all(self, codec: Client) -> None:
        assert b"400" in codec.raw(b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert codec.ask("/decode").status == 200  # it still serves


class TestBrowsers:
    def test_a_page_of_the_configured_ui_may_ask_and_read(self, codec: Client) -> None:
        asked = codec.ask("/decode", method="OPTIONS", Origin=UI, **{"Access-Control-Request-Method": "POST"})
        assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, UI)
        assert "X-Namespace" in asked.headers["Access-Control-Allow-Headers"]
        answer = codec.ask("/decode", Origin=UI)
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, UI)
        assert (answer.headers["Vary"], answer.headers["Access-Control-Allow-Credentials"]) == ("Origin", "true")

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "http://localhost:82333", "https://localhost:8233", ""]
    )
    def test_a_page_of_another_site_may_not_even_with_the_token(self, codec: Client, origin: str) -> None:
        asked, answer = codec.ask("/decode", method="OPTIONS", Origin=origin), codec.ask("/decode", Origin=origin)
        assert (asked.status, answer.status) == (403, 403)
        for each in (asked, answer):
            assert "Access-Control-Allow-Origin" not in each.headers
        assert "hello" not in answer.text

    def test_a_page_reads_why_it_was_refused(self, codec: Client) -> None:
        answer = codec.ask("/decode", Origin=UI, Authorization="")
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (401, UI)

    def test_a_person_lets_a_browser_in_with_the_token(self, codec: Client) -> None:
        assert 'type="password"' in codec.ask("/login", method="GET").text
        let_in = codec.ask("/login", b"token=" + TOKEN)
        cookie = let_in.headers["Set-Cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict"))
        assert TOKEN.decode() not in cookie
        brought = {"Cookie": cookie.partition(";")[0], "Authorization": ""}
        assert codec.ask("/decode", Origin=UI, **brought).status == 200
        assert codec.ask("/decode", **brought).status == 401  # no page: whoever else got the cookie
        assert codec.ask("/decode", Origin="http://localhost:9000", **brought).status == 403

    @pytest.mark.parametrize("body", [b"", b"token=", b"token=wrong", b"token=%FF", b"x"])
    def test_a_wrong_token_lets_nobody_in(self, codec: Client, body: bytes) -> None:
        answer = codec.ask("/login", body)
        assert (answer.status, answer.headers["Set-Cookie"]) == (401, None)

    @pytest.mark.parametrize(
        "cookie", ["mendwork-codec=", "mendwork-codec=x", "a-token-of-some-length", ";;=;", 'x="\\']
    )
    def test_a_made_up_cookie_is_none(self, codec: Client, cookie: str) -> None:
        assert codec.ask("/decode", Origin=UI, Cookie=cookie, Authorization="").status == 401

    def test_its_life_is_told_to_everybody(self, codec: Client) -> None:
        answer = codec.ask("/livez", method="GET", Authorization="")
        assert (answer.status, answer.text) == (200, "ok\n")


class TestListening:
    def test_without_a_token_it_serves_this_machine(self) -> None:
        with served(Door(namespace="default")) as codec:
            assert codec.ask("/decode", Authorization="").status == 200
            assert codec.ask("/decode", Authorization="", Origin="http://evil.example").status == 403
            assert codec.ask("/login", b"token=").status == 401

    @pytest.mark.parametrize("host", [EVERYWHERE, "::", "10.1.2.3", "example.org", "127.0.0.1.example.org"])
    def test_without_a_token_it_listens_nowhere_else(self, host: str) -> None:
        with pytest.raises(InvalidInput, match=r"can be reached from other machines, and no \[codec\]\.token_file"):
            CodecServer(host, 0, door=Door(namespace="default"), codec=CODEC)

    def test_with_a_token_it_may(self) -> None:
        with served(Door(namespace="default", token=TOKEN), host=EVERYWHERE) as codec:
            codec.host = "127.0.0.1"
            assert codec.ask("/decode").status == 200

    def test_a_taken_port_is_a_sentence(self, codec: Client) -> None:
        with pytest.raises(InvalidInput, match=rf"cannot listen on 127\.0\.0\.1 port {codec.port}: Address already"):
            CodecServer("127.0.0.1", codec.port, door=Door(namespace="default"), codec=CODEC)

    def test_what_only_this_machine_reaches(self) -> None:
        assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
        assert not any(map(is_loopback, (EVERYWHERE, "", "localhost.example.org", "192.168.0.1", "::")))

    def test_more_connections_than_places_are_closed_and_it_goes_on(self, codec: Client) -> None:
        with served(Door(namespace="default", token=TOKEN)) as small:
            idle = [socket.create_connection((small.host, small.port), timeout=20) for _ in range(70)]
            try:
                assert min(map(_closed, idle[64:]))
            finally:
                for each in idle:
                    each.close()
            for _ in range(100):
                with suppress(OSError, http.client.HTTPException):
                    if small.ask("/decode").status == 200:
                        return
            pytest.fail("it does not serve again")


def _closed(connection: socket.socket) -> bool:
    with suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def test_the_log_has_counts_and_no_content(capfd: pytest.CaptureFixture[str]) -> None:
    with served(Door(namespace="default", token=TOKEN)) as codec:
        codec.ask("/decode")
        codec.ask("/decode", b"x-content")
        codec.ask("/x-path", Authorization="Bearer x-header")
    assert capfd.readouterr().err == "codec: decode 1 payloads for 127.0.0.1\n"


def test_a_doors_text_does_not_tell_the_token() -> None:
    assert "a-token" not in repr(Door(namespace="default", token=TOKEN))


def test_a_refusal_has_its_status() -> None:
    headers: Any = Message()
    with pytest.raises(Refused) as caught:
        Door(namespace="default", token=TOKEN).admit(headers)
    assert caught.value.status == 401
