"""Listing, filtering and paging."""

from __future__ import annotations

from tests.support import ServiceCase


class ListTest(ServiceCase):
    def test_an_empty_service_lists_nothing(self) -> None:
        self.assertEqual(self.request("GET", "/notes").json, {"items": [], "next_cursor": None})

    def test_the_newest_note_comes_first(self) -> None:
        for title in ("one", "two", "three"):
            self.create(title)
        self.assertEqual(self.titles(), ["three", "two", "one"])

    def test_pinned_notes_can_be_asked_for(self) -> None:
        self.create("one", pinned=True)
        self.create("two")
        self.assertEqual(self.titles("/notes?pinned=true"), ["one"])
        self.assertEqual(self.titles("/notes?pinned=false"), ["two"])

    def test_search_looks_into_title_and_body_and_ignores_case(self) -> None:
        self.create("Buy MILK")
        self.create("Shopping", body="milk and bread")
        self.create("Call mum")
        self.assertEqual(self.titles("/notes?q=milk"), ["Shopping", "Buy MILK"])

    def test_search_takes_wildcards_literally(self) -> None:
        self.create("100% sure")
        self.create("100 times")
        self.create("snake_case")
        self.create("back\\slash")
        self.assertEqual(self.titles("/notes?q=0%25"), ["100% sure"])
        self.assertEqual(self.titles("/notes?q=e_c"), ["snake_case"])
        self.assertEqual(self.titles("/notes?q=k%5Cs"), ["back\\slash"])

    def test_filters_can_be_combined(self) -> None:
        self.create("milk", pinned=True)
        self.create("milk")
        self.create("bread", pinned=True)
        self.assertEqual(len(self.titles("/notes?q=milk&pinned=true")), 1)

    def test_a_filter_that_is_not_understood_is_refused(self) -> None:
        cases = {
            "pinned=maybe": {"pinned": "must be true or false"},
            "pinned=true&pinned=false": {"pinned": "is given more than once"},
            "color=red": {"color": "is not a known parameter"},
            f"q={'x' * 101}": {"q": "has more than 100 characters"},
        }
        for query, problems in cases.items():
            with self.subTest(query):
                reply = self.request("GET", f"/notes?{query}")
                self.assertEqual((reply.status, reply.problems), (422, problems))


class PagingTest(ServiceCase):
    def pages(self, query: str) -> list[list[str]]:
        found, cursor = [], ""
        while cursor is not None:
            page = self.request("GET", f"/notes?{query}{cursor and '&cursor='}{cursor}").json
            found.append([item["title"] for item in page["items"]])
            cursor = page["next_cursor"]
        return found

    def test_pages_hold_every_note_once(self) -> None:
        for number in range(5):
            self.create(str(number))
        self.assertEqual(self.pages("limit=2"), [["4", "3"], ["2", "1"], ["0"]])

    def test_a_full_last_page_is_the_last(self) -> None:
        for number in range(4):
            self.create(str(number))
        self.assertEqual(self.pages("limit=2"), [["3", "2"], ["1", "0"]])

    def test_paging_keeps_the_filter(self) -> None:
        for number in range(6):
            self.create(str(number), pinned=number % 2 == 0)
        self.assertEqual(self.pages("limit=2&pinned=true"), [["4", "2"], ["0"]])

    def test_notes_made_and_deleted_while_paging_do_not_shift_pages(self) -> None:
        notes = [self.create(str(number)) for number in range(4)]
        first = self.request("GET", "/notes?limit=2").json
        self.create("new")
        self.request("DELETE", f"/notes/{notes[2]['id']}")
        self.assertEqual(self.titles(f"/notes?limit=2&cursor={first['next_cursor']}"), ["1", "0"])

    def test_twenty_notes_are_a_page_when_nothing_is_said(self) -> None:
        for number in range(21):
            self.create(str(number))
        self.assertEqual(len(self.titles()), 20)

    def test_a_limit_out_of_range_is_refused(self) -> None:
        for limit in ("0", "101", "-1", "ten", "1.5", "9999999999", "²"):
            with self.subTest(limit):
                reply = self.request("GET", f"/notes?limit={limit.replace('²', '%C2%B2')}")
                self.assertEqual((reply.status, reply.problems), (422, {"limit": "must be a number from 1 to 100"}))

    def test_a_made_up_cursor_is_refused(self) -> None:
        for cursor in ("12", "%21%21", "cDE3eA", "cA", "w6Q"):
            with self.subTest(cursor):
                reply = self.request("GET", f"/notes?cursor={cursor}")
                self.assertEqual((reply.status, list(reply.problems)), (422, ["cursor"]))
