"""What finishes late never undoes what a person did meanwhile: whoever has gone on stays where he went."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Route, expect

from support.console_site import Site
from support.console_views import VIEWS, View, expect_streaming, expect_view, fill, row
from support.console_visitor import Visitor
from support.waiting import eventually

ANOTHER_VIEW, ANOTHER_ROW = VIEWS["topics"], VIEWS["row"]
ELSEWHERE = pytest.mark.parametrize("view", [ANOTHER_VIEW, ANOTHER_ROW], ids=["another view", "another row"])


class Held:
    """Requests of a page that are not sent on until they are released."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._routes: list[Route] = []

    def add(self, route: Route) -> None:
        self._routes.append(route)

    def wait(self) -> None:
        """Until there is one. Playwright hears of requests only while it is asked something."""
        eventually(lambda: self._page.evaluate("true") and bool(self._routes))

    def release(self) -> None:
        while self._routes:
            self._routes.pop().continue_()

    def refuse(self, status: int, code: str) -> None:
        """The server says no."""
        refusal = {"error": {"code": code, "message": f"refused as {code}", "hint": ""}}
        self._routes.pop().fulfill(status=status, body=json.dumps(refusal), content_type="application/json")


@contextmanager
def held(page: Page, address: str, method: str = "GET") -> Iterator[Held]:
    """Holds requests whose address has this in it."""
    waiting = Held(page)
    is_on = True

    def hold(route: Route) -> None:
        if is_on and route.request.method == method:
            waiting.add(route)
        else:
            route.continue_()

    pattern = re.compile(address)
    page.route(pattern, hold)
    try:
        yield waiting
    finally:
        is_on = False
        waiting.release()
        page.unroute(pattern, hold)


def goes_to(page: Page, visitor: Visitor, view: str) -> None:
    page.goto(f"{visitor.url}/{view}")


def is_said(page: Page, words: str) -> None:
    expect(page.locator("[data-announcer]")).to_contain_text(words)


def is_at(page: Page, visitor: Visitor, view: str) -> None:
    expect(page).to_have_url(f"{visitor.url}/{view}")


def add(page: Page, key: str) -> None:
    page.get_by_role("button", name="Add row").click()
    fill(page, "Add a row", Key=key, Value='{"name": "Lale"}')


@ELSEWHERE
def test_a_row_that_is_added_late_is_not_opened(visitor: Visitor, site: Site, view: View) -> None:
    page = visitor.open("#/tables/users?prefix=late-")
    with held(page, "/rows/late-added", "PUT") as put:
        add(page, "late-added")
        put.wait()
        goes_to(page, visitor, view.link)
        expect_view(page, view)
        put.release()
        is_said(page, "Written at")
        expect(page.get_by_role("dialog")).to_have_count(0)
    is_at(page, visitor, view.link)
    expect_view(page, view)
    expect(page.locator("[data-ack]")).to_have_count(0)


@ELSEWHERE
@pytest.mark.parametrize("verb", ["Edit", "Delete"])
def test_a_row_that_is_written_late_is_not_opened(visitor: Visitor, site: Site, view: View, verb: str) -> None:
    with site.table("users") as users:
        users.put("late-changed", {"name": "Lale"})
    page = visitor.open("#/tables/users/late-changed")
    expect(page.locator("[data-value]")).to_contain_text("Lale")
    page.get_by_role("button", name=verb, exact=True).click()
    asked = page.get_by_role("dialog")
    with held(page, "/rows/late-changed", "PUT" if verb == "Edit" else "DELETE") as write:
        asked.get_by_role("button", name="Write" if verb == "Edit" else "Delete", exact=True).click()
        write.wait()
        goes_to(page, visitor, view.link)
        expect_view(page, view)
        write.release()
        is_said(page, "Written at" if verb == "Edit" else "Deleted at")
        expect(asked).to_have_count(0)
    is_at(page, visitor, view.link)
    expect_view(page, view)
    expect(page.locator("[data-ack]")).to_have_count(0)


def test_a_write_whose_dialog_was_cancelled_is_told_and_leads_nowhere(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables/users?prefix=late-")
    with held(page, "/rows/late-cancelled", "PUT") as put:
        add(page, "late-cancelled")
        put.wait()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        put.release()
        is_said(page, "Written at")
    expect(row(page, "late-cancelled")).to_be_visible()
    is_at(page, visitor, "#/tables/users?prefix=late-")


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (403, "forbidden", "not done"),
        (409, "topic_changed", "not acknowledged"),
        (503, "cluster_unreachable", "not acknowledged"),
        (503, "not_enough_replicas", "not acknowledged"),
    ],
)
def test_a_write_that_is_refused_after_its_dialog_was_cancelled_is_told(
    visitor: Visitor, status: int, code: str, outcome: str
) -> None:
    visitor.expects(f"status of {status}")
    page = visitor.open("#/tables/users?prefix=late-")
    with held(page, "/rows/late-refused", "PUT") as put:
        add(page, "late-refused")
        put.wait()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        put.refuse(status, code)
        is_said(page, f"{outcome}. refused as {code}")


@ELSEWHERE
def test_a_token_that_is_given_late_leaves_the_reader_where_he_went(visitor: Visitor, view: View) -> None:
    visitor.expects("status of 401")
    page = visitor.open("#/tables/users?prefix=late-")
    asked = page.get_by_role("dialog", name="Token needed")
    with held(page, "/rows/late-token", "PUT") as put:
        add(page, "late-token")
        put.wait()
        put.refuse(401, "unauthorized")
        expect(asked).to_be_visible()
        goes_to(page, visitor, view.link)
        asked.get_by_role("textbox", name="Token").fill("any-0123456789abcdef")
        asked.get_by_role("button", name="Use token").click()
        put.wait()
        put.release()
        is_said(page, "Written at")
    is_at(page, visitor, view.link)
    expect_view(page, view)


def test_a_compaction_that_is_refused_late_is_told_where_the_reader_went(visitor: Visitor) -> None:
    visitor.expects("status of 409")
    page = visitor.open("#/topics/user-profiles")
    with held(page, "/topics/user-profiles/compact", "POST") as post:
        page.get_by_role("button", name="Compact now").click()
        post.wait()
        goes_to(page, visitor, ANOTHER_ROW.link)
        expect_view(page, ANOTHER_ROW)
        post.refuse(409, "already_running")
        is_said(page, "user-profiles was not compacted: refused as already_running")
    is_at(page, visitor, ANOTHER_ROW.link)
    expect_view(page, ANOTHER_ROW)


def test_a_key_that_is_found_late_is_not_opened(visitor: Visitor) -> None:
    page = visitor.open("#/tables/users")
    # A link leads to the list in which it was drawn: here to the whole one.
    expect(row(page, "user-3")).to_be_visible()
    with held(page, "/tables/users/rows.*prefix=user-1") as found:
        page.get_by_role("searchbox", name="Find by key or prefix").fill("user-1")
        page.get_by_role("button", name="Find", exact=True).click()
        found.wait()
        row(page, "user-3").get_by_role("link").click()
        expect_view(page, ANOTHER_ROW)
        # Only now is the list read to which the reader went, and the row that was looked for is in it.
        expect_streaming(page)
        expect(row(page, "user-1")).to_be_visible()
    is_at(page, visitor, ANOTHER_ROW.link)


def test_a_key_that_is_found_late_does_not_replace_another_row_of_the_same_list(visitor: Visitor) -> None:
    page = visitor.open("#/tables/users")
    expect(row(page, "user-3")).to_be_visible()
    with held(page, "/tables/users/rows.*prefix=user-1") as found:
        page.get_by_role("searchbox", name="Find by key or prefix").fill("user-1")
        page.get_by_role("button", name="Find", exact=True).click()
        found.wait()
        goes_to(page, visitor, "#/tables/users/user-3?prefix=user-1")
        found.release()
        expect(row(page, "user-1")).to_be_visible()
        expect(row(page, "user-3")).to_have_count(0)
        expect_streaming(page)
    is_at(page, visitor, "#/tables/users/user-3?prefix=user-1")
    expect(page.get_by_role("region", name="Row user-3")).to_be_visible()


def test_a_key_that_is_looked_for_again_is_opened_at_once(visitor: Visitor) -> None:
    page = visitor.open("#/tables/users")
    for _ in range(2):
        page.get_by_role("searchbox", name="Find by key or prefix").fill("user-3")
        page.get_by_role("button", name="Find", exact=True).click()
        is_at(page, visitor, "#/tables/users/user-3?prefix=user-3")
        page.get_by_role("button", name="Close", exact=True).click()
        is_at(page, visitor, "#/tables/users?prefix=user-3")


def test_a_view_that_is_fetched_late_is_the_one_that_was_asked_for_last(visitor: Visitor) -> None:
    page = visitor.open("#/topics", fresh=True)
    expect_view(page, ANOTHER_VIEW)
    with held(page, "/views/table.js") as script:
        goes_to(page, visitor, "#/tables/users")
        script.wait()
        goes_to(page, visitor, ANOTHER_ROW.link)
    expect_view(page, ANOTHER_ROW)
    is_at(page, visitor, ANOTHER_ROW.link)


def test_tables_that_are_known_late_do_not_bring_the_changes_back(visitor: Visitor) -> None:
    page = visitor.open("#/", fresh=True)
    with held(page, "/views/topics.js") as script, held(page, "/tables$") as tables:
        page.reload()
        tables.wait()
        goes_to(page, visitor, "#/changes")
        expect(page.get_by_role("heading", level=1, name="Changes")).to_be_visible()
        goes_to(page, visitor, ANOTHER_VIEW.link)
        script.wait()
        tables.release()
        expect(page.get_by_role("checkbox", name="users", exact=True)).to_be_checked()
        is_at(page, visitor, ANOTHER_VIEW.link)
    expect_view(page, ANOTHER_VIEW)


def test_a_row_that_was_added_is_shown_however_old_the_first_answer_is(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables/users?prefix=late-b")
    expect(page.locator("[data-state-note=empty]")).to_be_visible()
    old = site.instance.ask("/tables/users/rows?start=late-between&limit=1").body

    def answer(route: Route) -> None:
        if "min_position" in route.request.url:
            route.continue_()
        else:
            route.fulfill(body=old, content_type="application/json")

    asked = re.compile("/tables/users/rows.*start=late-between")
    page.route(asked, answer)
    with held(page, r"/changes\?"):
        # The change of the row does not come, either.
        goes_to(page, visitor, "#/tables/users?prefix=late-be")
        expect(page.locator("[data-state-note=empty]")).to_be_visible()
        add(page, "late-between")
        expect(page.locator("[data-ack]")).to_be_visible()
        goes_to(page, visitor, "#/tables/users/late-between")
        expect(page.locator("[data-value]")).to_contain_text("Lale")
    page.unroute(asked, answer)


def test_a_row_is_shown_that_came_after_its_answer_and_before_the_changes(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables")
    with held(page, "/tables/users/rows.*prefix=elsewhere") as rows:
        goes_to(page, visitor, "#/tables/users/late-gap?prefix=elsewhere")
        rows.wait()
        expect(page.locator("[data-state-note=missing]")).to_be_visible()
        with site.table("users") as users:
            written = users.put("late-gap", {"name": "Gabi"})
        site.instance.ask(f"/tables/users/rows/late-gap?min_position={written.partition}:{written.offset + 1}")
        rows.release()
        expect(page.locator("[data-value]")).to_contain_text("Gabi")


def test_a_row_is_gone_that_was_deleted_after_its_answer_and_before_the_changes(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables")
    with site.table("users") as users:
        users.put("late-gone", {"name": "Gerd"})
        with held(page, "/tables/users/rows.*prefix=elsewhere") as rows:
            goes_to(page, visitor, "#/tables/users/late-gone?prefix=elsewhere")
            rows.wait()
            expect(page.locator("[data-value]")).to_contain_text("Gerd")
            gone = users.delete("late-gone")
            site.instance.ask(f"/tables/users/rows?limit=1&min_position={gone.partition}:{gone.offset + 1}")
            rows.release()
            expect(page.locator("[data-state-note=missing]")).to_be_visible()
