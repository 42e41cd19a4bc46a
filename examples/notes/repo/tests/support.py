"""A running service for a test, and a client that speaks to it."""

from __future__ import annotations

import http.client
import json
import logging
import tempfile
import threading
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notes.api import build_router
from notes.store import NoteStore
from notes.web.server import WebServer

logging.getLogger("notes").addHandler(logging.NullHandler())
logging.getLogger("notes").propagate = False


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def problems(self) -> dict[str, str]:
        return {entry["field"]: entry["message"] for entry in self.json["error"]["details"]}


class ServiceCase(unittest.TestCase):
    """Every test gets its own service on a free port, with its own empty database."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = NoteStore(Path(folder.name) / "notes.db")
        self.addCleanup(self.store.close)
        self.server = WebServer(("127.0.0.1", 0), build_router(self.store, release="r42"))
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.drain)

    def request(
        self, method: str, path: str, payload: Any = None, *, body: bytes | None = None, **headers: str
    ) -> Reply:
        """``payload`` goes as JSON, ``body`` as it is; headers are written ``If_Match``."""
        if payload is not None:
            body = json.dumps(payload).encode()
            headers.setdefault("Content_Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, names)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def create(self, title: str = "Milk", **fields: Any) -> Any:
        reply = self.request("POST", "/notes", {"title": title, **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def titles(self, path: str = "/notes") -> list[str]:
        reply = self.request("GET", path)
        self.assertEqual(reply.status, 200, reply.body)
        return [item["title"] for item in reply.json["items"]]
