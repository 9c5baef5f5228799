"""Rows as they come, change and go while somebody looks; written by others, and by the page itself."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from support.console_site import Site
from support.console_views import VIEWS, expect_view, fill, row, time_text
from support.console_visitor import Visitor, cells


def test_a_put_appears_and_lights_up_without_a_reload(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables/users?prefix=new-")
    expect(page.locator("[data-state-note=empty]")).to_be_visible()
    with site.table("users") as users:
        users.put("new-2", {"name": "Nina"})
        expect(row(page, "new-2")).to_contain_text("Nina")
        users.put("new-1", {"name": "Nils"})
        expect(row(page, "new-1")).to_contain_text("Nils")
        assert cells(page.locator("tr[data-key]"), "data-key") == ["new-1", "new-2"]
        lit = page.locator("tr[data-changed]")
        # Not for ever.
        expect(lit).to_have_count(0)
        users.put("new-2", {"name": "Nora"})
        expect(lit).to_contain_text("Nora")
        expect(lit).to_have_count(0)


def test_a_tombstone_removes_its_row_and_a_null_does_not(visitor: Visitor, site: Site) -> None:
    with site.table("users") as users:
        for key in ("gone-1", "gone-2", "gone-3"):
            users.put(key, {"is": "here"})
        page = visitor.open("#/tables/users?prefix=gone-")
        expect(page.locator("tr[data-key]")).to_have_count(3)
        users.put("gone-1", None)
        users.delete("gone-2")
        expect(row(page, "gone-2")).to_have_count(0)
        expect(row(page, "gone-1")).to_contain_text("null")
        expect(row(page, "gone-3")).to_have_count(1)


def test_a_row_that_is_deleted_while_it_is_open_says_so(visitor: Visitor, site: Site) -> None:
    with site.table("users") as users:
        users.put("brief", {"a": 1})
        page = visitor.open("#/tables/users/brief")
        expect(page.locator("[data-value]")).to_contain_text("1")
        users.put("brief", {"a": 2})
        expect(page.locator("[data-value]")).to_contain_text("2")
        users.delete("brief")
        expect(page.locator("[data-state-note=deleted]")).to_be_visible()


def test_a_row_shows_its_value_its_place_and_its_time(visitor: Visitor, site: Site) -> None:
    told = site.instance.ask("/tables/users/rows/user-3").json
    page = visitor.open(VIEWS["row"].link)
    expect_view(page, VIEWS["row"])
    detail = page.get_by_role("region", name="Row user-3")
    for text in ("Charlie", "charlie@example.com"):
        expect(detail.locator("[data-value]")).to_contain_text(text)
    shown = " ".join(detail.inner_text().split())
    assert f"Partition {told['partition']}" in shown
    assert f"Offset {told['offset']}" in shown
    assert "Size" in shown
    assert time_text(told["timestamp"]) in shown


def test_parts_of_a_value_are_folded_and_unfolded(visitor: Visitor, site: Site) -> None:
    with site.table("odd") as odd:
        odd.put("deep", {"outer": {"inner": [1, 2, {"last": "found"}]}, "plain": True})
    page = visitor.open("#/tables/odd/deep")
    value = page.locator("[data-value]")
    expect(value).to_contain_text("plain")
    first = value.locator("button[aria-expanded]").first
    was = first.get_attribute("aria-expanded")
    before = value.inner_text()
    first.click()
    expect(first).not_to_have_attribute("aria-expanded", was or "")
    assert value.inner_text() != before
    first.click()
    assert value.inner_text() == before


def test_keys_are_found_by_prefix_and_pages_go_on_to_the_end(visitor: Visitor, site: Site) -> None:
    with site.table("odd") as odd:
        odd.put_many((f"page-{number:04}", number) for number in range(120))
    page = visitor.open("#/tables/odd")
    page.get_by_role("searchbox", name="Find by key or prefix").fill("page-")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.locator("tr[data-key]").first).to_have_attribute("data-key", "page-0000")
    seen: list[str | None] = []
    following = page.get_by_role("button", name="Next page")
    while True:
        keys = cells(page.locator("tr[data-key]"), "data-key")
        seen += keys
        if following.is_disabled() or len(seen) > 120:
            break
        following.click()
        expect(row(page, str(keys[0]))).to_have_count(0)
        page.locator("tr[data-key]").first.wait_for()
    assert seen == [f"page-{number:04}" for number in range(120)]
    page.get_by_role("button", name="Previous page").click()
    expect(row(page, "page-0119")).to_have_count(0)


def test_a_row_is_added_edited_and_deleted_and_each_write_says_where_it_stands(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables/users?prefix=mine")
    page.get_by_role("button", name="Add row").click()
    fill(page, "Add a row", Key="mine", Value='{"name": "Mia"}')
    added = acknowledged(page, site, "mine")
    page.goto(f"{site.url}/#/tables/users/mine")
    expect(page.locator("[data-value]")).to_contain_text("Mia")

    page.get_by_role("button", name="Edit", exact=True).click()
    fill(page, "Edit mine", Value='{"name": "Max"}')
    edited = acknowledged(page, site, "mine", but_not=added)
    expect(page.locator("[data-value]")).to_contain_text("Max")
    assert site.instance.ask("/tables/users/rows/mine").json["value"] == {"name": "Max"}

    page.get_by_role("button", name="Delete", exact=True).click()
    asked = page.get_by_role("dialog", name="Delete mine?")
    asked.get_by_role("button", name="Cancel").click()
    assert site.instance.ask("/tables/users/rows/mine").status == 200
    page.get_by_role("button", name="Delete", exact=True).click()
    asked.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("[data-state-note=deleted]")).to_be_visible()
    # The change may come before the acknowledgement of its write.
    expect(page.locator("[data-ack]")).not_to_have_attribute("data-ack", edited)
    shown = page.locator("[data-ack]").get_attribute("data-ack")
    assert shown not in (None, added, edited)
    assert site.instance.ask(f"/tables/users/rows/mine?min_position={shown}").status == 404


def test_a_row_that_is_edited_keeps_its_headers(visitor: Visitor, site: Site) -> None:
    with site.table("users") as users:
        users.put("headed", {"name": "Hedi"}, [("trace", b"x"), ("schema", b"\x00\xff"), ("trace", None)])
    page = visitor.open("#/tables/users/headed")
    expect(page.locator("[data-value]")).to_contain_text("Hedi")
    page.get_by_role("button", name="Edit", exact=True).click()
    fill(page, "Edit headed", Value='{\n  "name": "Hans\\nHolt",\n  "id": 12345678901234567890\n}')
    acknowledged(page, site, "headed")
    expect(page.locator("[data-value]")).to_contain_text("Hans")
    told = site.instance.ask("/tables/users/rows/headed").json
    assert told["value"] == {"name": "Hans\nHolt", "id": 12345678901234567890}
    assert told["headers"] == [["trace", "x"], ["schema", {"base64": "AP8="}], ["trace", None]]


def test_bytes_that_are_edited_keep_their_headers(visitor: Visitor, site: Site) -> None:
    with site.table("packed") as packed:
        packed.put('he said "hi"', b"\x00\x01", {"trace": "x"})
    page = visitor.open("#/tables/packed/he%20said%20%22hi%22")
    page.get_by_role("button", name="Edit", exact=True).click()
    fill(page, 'Edit he said "hi"', Value="/v8=")
    shown = page.locator("[data-ack]")
    expect(shown).to_be_visible()
    partition, offset = (shown.get_attribute("data-ack") or "").split(":")
    at = f"{partition}:{int(offset) + 1}"
    told = site.instance.ask(f"/tables/packed/rows/he%20said%20%22hi%22?min_position={at}").json
    assert (told["value"], told["headers"], told["offset"]) == ("/v8=", [["trace", "x"]], int(offset))


def test_a_row_that_is_written_again_after_its_delete_has_no_headers(visitor: Visitor, site: Site) -> None:
    with site.table("users") as users:
        users.put("again", {"name": "Anna"}, {"trace": "x"})
    page = visitor.open("#/tables/users/again")
    expect(page.locator("[data-value]")).to_contain_text("Anna")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Write", exact=True).click()
    fill(page, "Edit again", Value='{"name": "Aron"}')
    expect(page.locator("[data-value]")).to_contain_text("Aron")
    assert "headers" not in site.instance.ask("/tables/users/rows/again").json


def acknowledged(page: Page, site: Site, key: str, but_not: str | None = None) -> str:
    """The place that the page shows for a write, which is where the row is."""
    ack = page.locator("[data-ack]").last
    expect(ack).to_be_visible()
    if but_not is not None:
        expect(ack).not_to_have_attribute("data-ack", but_not)
    shown = ack.get_attribute("data-ack") or ""
    partition, offset = shown.split(":")
    told = site.instance.ask(f"/tables/users/rows/{key}?min_position={partition}:{int(offset) + 1}").json
    assert (told["partition"], told["offset"]) == (int(partition), int(offset))
    assert offset in ack.inner_text().replace(",", "")
    return shown


def test_a_value_that_is_not_json_is_refused_with_the_reason_and_nothing_is_written(
    visitor: Visitor, site: Site
) -> None:
    visitor.expects("status of 400")
    page = visitor.open("#/tables/users?prefix=wrong")
    page.get_by_role("button", name="Add row").click()
    fill(page, "Add a row", Key="wrong", Value="{not json")
    refused = page.get_by_role("dialog", name="Add a row").get_by_role("alert")
    expect(refused).to_contain_text("JSON")
    assert site.instance.ask("/tables/users/rows/wrong").status == 404
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
