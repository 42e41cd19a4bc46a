"""A release on staging, asked at MENDWORK_TARGET_URL: it answers, and what it refuses it refuses well."""

from __future__ import annotations

import json
import os
import unittest
import urllib.error
import urllib.request
from typing import Any


def get(path: str) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    try:
        with urllib.request.urlopen(os.environ["MENDWORK_TARGET_URL"] + path, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


class ReleaseTest(unittest.TestCase):
    def test_it_is_healthy(self) -> None:
        self.assertEqual(get("/healthz"), (200, {"status": "ok"}))

    def test_it_says_what_it_is(self) -> None:
        status, said = get("/version")
        self.assertEqual((status, said["name"]), (200, "notes"))

    def test_notes_are_listed(self) -> None:
        status, said = get("/notes")
        self.assertEqual((status, said["items"]), (200, []))

    def test_a_note_that_is_not_there_is_not_found(self) -> None:
        status, said = get("/notes/nobody")
        self.assertEqual((status, said["error"]["code"]), (404, "not_found"))


if __name__ == "__main__":
    unittest.main()
