"""How a table stands, as the overview says it; the server's answer is changed on its way, so that it stays that way."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from support.console_visitor import Visitor, violations


def test_a_table_that_is_rebuilt_and_one_that_waits_for_space_are_named_with_the_reason(visitor: Visitor) -> None:
    states = {
        "users": {
            "state": "rebuilding",
            "why": "the copy on the server's disk was damaged: it is built again from Kafka",
            "done": 1200,
            "total": 5000,
            "seconds_left": None,
        },
        "odd": {"state": "failed", "why": "no space is left on the disk: the replica continues once there is space"},
    }

    def answer(route: Route) -> None:
        given = route.fetch()
        told = given.json()
        for table in told["tables"]:
            table.update(states.get(table["name"], {}))
        route.fulfill(response=given, json=told)

    page = visitor.open()
    page.route("**/tables", answer)
    try:
        page.goto(f"{visitor.url}/#/tables")
        page.goto(f"{visitor.url}/#/")
        wrong = page.get_by_role("region", name="Problems")
        expect(wrong).to_contain_text("The table users is being rebuilt: 1,200 of 5,000 records.")
        expect(wrong).to_contain_text("The copy on the server's disk was damaged: it is built again from Kafka.")
        expect(wrong).to_contain_text("Its rows can't be read until the rebuild is complete.")
        expect(wrong).to_contain_text("The table odd has failed: its rows are not updated any more.")
        expect(wrong).to_contain_text("No space is left on the disk: the replica continues once there is space.")
        expect(page.locator("[data-part='table:users']")).to_have_attribute("data-state", "rebuilding")
        assert violations(page) == []
    finally:
        page.unroute("**/tables")
