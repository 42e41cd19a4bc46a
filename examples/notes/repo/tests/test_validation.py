"""What is refused, and how that is said."""

from __future__ import annotations

import unittest

from notes.errors import InvalidFields
from notes.model import Note, NoteDraft
from notes.validation import encode_cursor, parse_draft, parse_paging, parse_patch


class DraftTest(unittest.TestCase):
    def problems(self, payload: dict[str, object]) -> dict[str, str]:
        with self.assertRaises(InvalidFields) as caught:
            parse_draft(payload)
        return {problem.field: problem.message for problem in caught.exception.details}

    def test_a_whole_draft_is_taken_over(self) -> None:
        payload: dict[str, object] = {"title": "Milk", "body": "two litres", "pinned": True}
        self.assertEqual(parse_draft(payload), NoteDraft("Milk", "two litres", True))

    def test_all_problems_are_told_at_once(self) -> None:
        found = self.problems({"title": "", "body": 1, "pinned": "yes", "colour": "red"})
        self.assertEqual(
            found,
            {
                "colour": "is not a known field",
                "title": "is empty",
                "body": "must be a text",
                "pinned": "must be true or false",
            },
        )

    def test_a_title_is_a_short_text_that_can_be_shown(self) -> None:
        cases: list[tuple[object, str]] = [
            (None, "must be a text"),
            (" \n ", "is empty"),
            ("x" * 201, "has more than 200 characters"),
            ("bell\a", "has characters that cannot be shown"),
            ("half \ud83e", "has characters that cannot be shown"),
        ]
        for title, message in cases:
            with self.subTest(title):
                self.assertEqual(self.problems({"title": title}), {"title": message})

    def test_a_title_may_be_as_long_as_the_limit(self) -> None:
        self.assertEqual(len(parse_draft({"title": "x" * 200}).title), 200)

    def test_a_body_has_a_limit_and_is_unicode(self) -> None:
        self.assertEqual(self.problems({"title": "x", "body": "x" * 20_001})["body"], "has more than 20000 characters")
        self.assertEqual(self.problems({"title": "x", "body": "half \ud83e"})["body"], "is not valid Unicode")

    def test_numbers_are_no_booleans(self) -> None:
        self.assertEqual(self.problems({"title": "x", "pinned": 1}), {"pinned": "must be true or false"})


class PatchTest(unittest.TestCase):
    NOTE = Note("n1", "Milk", "two litres", True, 3, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")

    def test_fields_that_are_not_named_stay(self) -> None:
        self.assertEqual(parse_patch({"title": "Bread"}, self.NOTE), NoteDraft("Bread", "two litres", True))

    def test_null_is_a_value_and_no_way_to_leave_a_field_out(self) -> None:
        with self.assertRaises(InvalidFields):
            parse_patch({"body": None}, self.NOTE)

    def test_what_the_service_decides_cannot_be_patched(self) -> None:
        for field in ("id", "revision", "created_at", "updated_at"):
            with self.subTest(field), self.assertRaises(InvalidFields):
                parse_patch({field: "x"}, self.NOTE)


class CursorTest(unittest.TestCase):
    def test_a_cursor_leads_back_to_its_position(self) -> None:
        for position in (1, 42, 10**12):
            with self.subTest(position):
                self.assertEqual(parse_paging({"cursor": [encode_cursor(position) or ""]}), (20, position))

    def test_the_last_page_has_no_cursor(self) -> None:
        self.assertIsNone(encode_cursor(None))
