"""HTTP as such: routes, bodies, connections."""

from __future__ import annotations

import http.client
import json
import threading

from notes import __version__
from notes.web.messages import Request, Response
from notes.web.server import MAX_BODY_BYTES
from tests.support import ServiceCase


class OperationsTest(ServiceCase):
    def test_health_says_ok_while_the_database_answers(self) -> None:
        reply = self.request("GET", "/healthz")
        self.assertEqual((reply.status, reply.json), (200, {"status": "ok"}))

    def test_health_fails_when_the_database_is_gone(self) -> None:
        self.store.close()
        reply = self.request("GET", "/healthz")
        self.assertEqual((reply.status, reply.code), (503, "unavailable"))

    def test_version_names_what_is_deployed(self) -> None:
        reply = self.request("GET", "/version")
        self.assertEqual(reply.json, {"name": "notes", "version": __version__, "release": "r42"})


class RefusalTest(ServiceCase):
    def test_an_unknown_path_is_not_found(self) -> None:
        for path in ("/", "/note", "/notes/", "/notes/1/2"):
            with self.subTest(path):
                reply = self.request("GET", path)
                self.assertEqual((reply.status, reply.code), (404, "not_found"))

    def test_a_wrong_method_is_told_the_right_ones(self) -> None:
        reply = self.request("DELETE", "/notes")
        self.assertEqual((reply.status, reply.code), (405, "method_not_allowed"))
        self.assertEqual(reply.headers["Allow"], "GET, HEAD, POST")

    def test_a_method_that_nobody_knows_is_answered_in_json(self) -> None:
        self.assertEqual(self.request("BREW", "/notes").status, 501)
        self.assertEqual(self.request("BREW", "/notes").code, "malformed_request")

    def test_a_body_that_is_no_json_object_is_malformed(self) -> None:
        for body in (b"", b"{", b"[1]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}"):
            with self.subTest(body[:10]):
                reply = self.request("POST", "/notes", body=body, Content_Type="application/json")
                self.assertEqual((reply.status, reply.code), (400, "malformed_request"))

    def test_a_body_of_another_type_is_refused(self) -> None:
        reply = self.request("POST", "/notes", body=b"title=Milk", Content_Type="application/x-www-form-urlencoded")
        self.assertEqual((reply.status, reply.code), (415, "unsupported_media_type"))

    def test_a_character_set_after_the_type_does_not_matter(self) -> None:
        reply = self.request("POST", "/notes", {"title": "Milk"}, Content_Type="Application/JSON; charset=utf-8")
        self.assertEqual(reply.status, 201)

    def test_a_body_over_the_limit_is_refused_unread(self) -> None:
        reply = self.request("POST", "/notes", Content_Length=str(MAX_BODY_BYTES + 1))
        self.assertEqual((reply.status, reply.code), (413, "body_too_large"))
        self.assertEqual(reply.headers["Connection"], "close")

    def test_a_chunked_body_is_refused(self) -> None:
        reply = self.request("POST", "/notes", Transfer_Encoding="chunked")
        self.assertEqual((reply.status, reply.headers["Connection"]), (400, "close"))

    def test_an_address_that_is_no_utf8_is_malformed(self) -> None:
        for path in ("/notes/%ff", "/notes?q=%ff"):
            with self.subTest(path):
                self.assertEqual(self.request("GET", path).status, 400)

    def test_a_fault_of_ours_says_nothing_about_the_inside(self) -> None:
        self.store.close()
        reply = self.request("GET", "/notes")
        self.assertEqual((reply.status, reply.code), (500, "internal_error"))
        self.assertNotIn(b"sqlite", reply.body.lower())


class ConnectionTest(ServiceCase):
    def test_a_connection_serves_several_requests(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        self.addCleanup(connection.close)
        for _ in range(3):
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            self.assertEqual((response.status, json.load(response)), (200, {"status": "ok"}))

    def test_many_clients_at_once_lose_nothing(self) -> None:
        threads = [threading.Thread(target=self.create, args=(str(number),)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.titles()), sorted(map(str, range(16))))


class DrainTest(ServiceCase):
    def test_a_request_that_is_being_answered_is_finished(self) -> None:
        entered, release = threading.Event(), threading.Event()

        def slow(request: Request) -> Response:
            entered.set()
            release.wait(5)
            return Response.of_json({"slow": True})

        self.server.router.add("GET", "/slow", slow)
        replies = []
        client = threading.Thread(target=lambda: replies.append(self.request("GET", "/slow")))
        client.start()
        entered.wait(5)
        draining = threading.Thread(target=self.server.drain)
        draining.start()
        release.set()
        draining.join()
        client.join()
        self.assertEqual((replies[0].status, replies[0].json), (200, {"slow": True}))

    def test_an_idle_connection_does_not_hold_up_the_end(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        self.addCleanup(connection.close)
        connection.request("GET", "/healthz")
        self.assertEqual(json.load(connection.getresponse()), {"status": "ok"})
        self.server.drain()
        assert connection.sock is not None
        self.assertEqual(connection.sock.recv(1), b"")
