"""Creating, reading, changing and deleting notes over HTTP."""

from __future__ import annotations

from tests.support import ServiceCase


class CreateTest(ServiceCase):
    def test_a_new_note_is_answered_whole_with_its_address(self) -> None:
        reply = self.request("POST", "/notes", {"title": "Milk", "body": "two litres", "pinned": True})
        self.assertEqual(reply.status, 201)
        self.assertEqual(reply.headers["Location"], f"/notes/{reply.json['id']}")
        self.assertEqual((reply.json["title"], reply.json["body"]), ("Milk", "two litres"))
        self.assertTrue(reply.json["pinned"])
        self.assertEqual(reply.json["revision"], 1)
        self.assertEqual(reply.json["created_at"], reply.json["updated_at"])

    def test_body_and_pinned_have_defaults(self) -> None:
        note = self.create("Milk")
        self.assertEqual((note["body"], note["pinned"]), ("", False))

    def test_white_space_in_a_title_is_tidied(self) -> None:
        self.assertEqual(self.create("  Milk \n and\tbread ")["title"], "Milk and bread")

    def test_text_in_any_script_comes_back_as_it_went_in(self) -> None:
        note = self.create("Käse 🧀", body="チーズ\n\0")
        self.assertEqual(self.request("GET", f"/notes/{note['id']}").json, note)

    def test_a_refused_note_is_not_stored(self) -> None:
        self.request("POST", "/notes", {"title": ""})
        self.assertEqual(self.store.count(), 0)


class ReadTest(ServiceCase):
    def test_a_note_can_be_read_by_its_address(self) -> None:
        note = self.create("Milk")
        reply = self.request("GET", f"/notes/{note['id']}")
        self.assertEqual((reply.status, reply.json), (200, note))
        self.assertEqual(reply.headers["ETag"], '"1"')

    def test_an_unknown_note_is_not_found(self) -> None:
        reply = self.request("GET", "/notes/nobody")
        self.assertEqual((reply.status, reply.code), (404, "not_found"))

    def test_head_answers_like_get_without_a_body(self) -> None:
        note = self.create("Milk")
        reply = self.request("HEAD", f"/notes/{note['id']}")
        self.assertEqual((reply.status, reply.body), (200, b""))
        self.assertGreater(int(reply.headers["Content-Length"]), 100)


class ChangeTest(ServiceCase):
    def test_put_replaces_everything(self) -> None:
        note = self.create("Milk", body="two litres", pinned=True)
        reply = self.request("PUT", f"/notes/{note['id']}", {"title": "Bread"})
        self.assertEqual(reply.status, 200)
        self.assertEqual((reply.json["title"], reply.json["body"], reply.json["pinned"]), ("Bread", "", False))
        self.assertEqual((reply.json["revision"], reply.headers["ETag"]), (2, '"2"'))

    def test_put_needs_a_title(self) -> None:
        note = self.create("Milk")
        reply = self.request("PUT", f"/notes/{note['id']}", {"body": "two litres"})
        self.assertEqual((reply.status, reply.problems), (422, {"title": "is required"}))

    def test_patch_changes_only_what_it_names(self) -> None:
        note = self.create("Milk", body="two litres")
        changed = self.request("PATCH", f"/notes/{note['id']}", {"pinned": True}).json
        self.assertEqual((changed["title"], changed["body"], changed["pinned"]), ("Milk", "two litres", True))

    def test_an_empty_patch_is_refused(self) -> None:
        note = self.create("Milk")
        reply = self.request("PATCH", f"/notes/{note['id']}", {})
        self.assertEqual((reply.status, reply.problems), (422, {"note": "has no field to change"}))

    def test_changing_an_unknown_note_is_not_found(self) -> None:
        for method in ("PUT", "PATCH"):
            with self.subTest(method):
                self.assertEqual(self.request(method, "/notes/nobody", {"title": "Milk"}).status, 404)


class ConflictTest(ServiceCase):
    def test_a_change_on_the_revision_that_was_read_is_made(self) -> None:
        note = self.create("Milk")
        reply = self.request("PATCH", f"/notes/{note['id']}", {"title": "Bread"}, If_Match='"1"')
        self.assertEqual(reply.status, 200)

    def test_a_change_on_an_old_revision_is_refused(self) -> None:
        note = self.create("Milk")
        self.request("PATCH", f"/notes/{note['id']}", {"title": "Bread"})
        for method in ("PUT", "PATCH", "DELETE"):
            with self.subTest(method):
                reply = self.request(method, f"/notes/{note['id']}", {"title": "Eggs"}, If_Match='"1"')
                self.assertEqual((reply.status, reply.code), (412, "revision_conflict"))
        self.assertEqual(self.titles(), ["Bread"])

    def test_a_star_matches_every_revision(self) -> None:
        note = self.create("Milk")
        self.assertEqual(self.request("DELETE", f"/notes/{note['id']}", If_Match="*").status, 204)

    def test_an_if_match_that_is_no_etag_is_malformed(self) -> None:
        note = self.create("Milk")
        reply = self.request("DELETE", f"/notes/{note['id']}", If_Match="yesterday")
        self.assertEqual((reply.status, reply.code), (400, "malformed_request"))


class DeleteTest(ServiceCase):
    def test_a_deleted_note_is_gone(self) -> None:
        note = self.create("Milk")
        reply = self.request("DELETE", f"/notes/{note['id']}")
        self.assertEqual((reply.status, reply.body), (204, b""))
        self.assertEqual(self.request("GET", f"/notes/{note['id']}").status, 404)

    def test_deleting_twice_is_not_found(self) -> None:
        note = self.create("Milk")
        self.request("DELETE", f"/notes/{note['id']}")
        self.assertEqual(self.request("DELETE", f"/notes/{note['id']}").status, 404)
