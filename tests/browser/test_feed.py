"""The feed of changes: everything that is written, in pauses and outages too, and each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lastword.api.table import Table
from support.console_site import Site
from support.console_views import expect_streaming
from support.console_visitor import Motion, Visitor, cells, visiting


def fed(page: Page, prefix: str) -> list[str]:
    """The places of the changes of such keys, sorted: between partitions there is no order."""
    rows = page.locator(f"tr[data-kind][data-key^='{prefix}']")
    return sorted(str(place) for place in cells(rows, "data-offset"))


def written(table: Table, *keys: str, delete: bool = False) -> list[str]:
    """Writes the keys, or their tombstones; the places where they are."""
    acks = [table.delete(key) if delete else table.put(key, {"of": key}) for key in keys]
    return [f"{ack.partition}:{ack.offset}" for ack in acks]


def shows(page: Page, prefix: str, places: list[str]) -> None:
    expect(page.locator(f"tr[data-kind][data-key^='{prefix}']")).to_have_count(len(places))
    assert fed(page, prefix) == sorted(places)


def test_puts_and_deletes_are_fed_as_they_come_the_newest_first(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=users")
    expect_streaming(page)
    with site.table("users") as users:
        places = written(users, "fed-1", "fed-1", "fed-1")
        shows(page, "fed-", places)
        places += written(users, "fed-1", delete=True)
        shows(page, "fed-", places)
    # Of one key they are in order.
    rows = page.locator("tr[data-kind][data-key='fed-1']")
    assert cells(rows, "data-offset") == places[::-1]
    assert cells(rows, "data-kind") == ["delete", "put", "put", "put"]


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_change_lights_up_and_goes_out(visitor: Visitor, site: Site, motion: Motion) -> None:
    page = visitor.open("#/changes?tables=users", motion=motion)
    expect_streaming(page)
    with site.table("users") as users:
        written(users, "lit-1")
    row = page.locator("tr[data-key=lit-1]")
    expect(row).to_be_visible()
    expect(page.locator("tr[data-changed]")).to_have_count(0)


def test_a_feed_that_is_paused_goes_on_without_loss(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=users")
    expect_streaming(page)
    with site.table("users") as users:
        places = written(users, "held-1", "held-2")
        shows(page, "held-", places)
        page.get_by_role("button", name="Pause").click()
        waiting = written(users, *(f"held-{number}" for number in range(3, 23)))
        expect(page.locator("[data-waiting]")).to_contain_text("20")
        assert fed(page, "held-") == sorted(places)
        page.get_by_role("button", name="Resume").click()
        shows(page, "held-", places + waiting)


def test_what_is_filtered_out_is_not_lost(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=users")
    expect_streaming(page)
    with site.table("users") as users:
        page.get_by_role("searchbox", name="Only keys with").fill("sieve-a")
        kept = written(users, "sieve-a1", "sieve-a2")
        others = written(users, "sieve-b1")
        others += written(users, "sieve-b1", delete=True)
        shows(page, "sieve-", kept)
        page.get_by_role("searchbox", name="Only keys with").fill("sieve-")
        shows(page, "sieve-", kept + others)
        page.get_by_role("combobox", name="Kind").select_option(label="Deletes")
        shows(page, "sieve-", others[1:])


def test_a_link_chooses_tables_and_filter(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=odd&filter=chosen-y")
    expect_streaming(page)
    with site.table("users") as users, site.table("odd") as odd:
        written(users, "chosen-y1")
        written(odd, "chosen-n1")
        places = written(odd, "chosen-y2")
        shows(page, "chosen-", places)


def test_the_server_is_killed_and_comes_back_and_the_feed_has_missed_nothing(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    with site.another(tmp_path) as instance, visiting(browser, instance.url) as visitor, site.table("users") as users:
        # What the browser itself says of a server that is gone.
        visitor.expects("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET")
        page = visitor.open("#/changes?tables=users")
        expect_streaming(page)
        places = written(users, *(f"kept-{number}" for number in range(5)))
        shows(page, "kept-", places)

        instance.kill()

        expect(page.locator("[data-trouble=server]")).to_be_visible()
        expect(page.locator("main[data-stale]")).to_be_visible()
        expect(page.locator("[data-link]")).to_have_attribute("data-link", "lost")
        places += written(users, *(f"kept-{number}" for number in range(3, 10)))
        places += written(users, "kept-0", "kept-1", delete=True)
        assert len(fed(page, "kept-")) == 5, "what was known stays"

        instance.start()

        expect_streaming(page)
        expect(page.locator("[data-trouble=server]")).to_have_count(0)
        expect(page.locator("main[data-stale]")).to_have_count(0)
        places += written(users, "kept-last")
        shows(page, "kept-", places)
