"""Topics: what is in each partition, how much of it is obsolete, and compaction on demand."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from lastword.kafka.topics.topic_changes import create_topic
from support.boards import write
from support.console_site import Site
from support.console_visitor import Visitor
from support.topic_contents import records_of

FIGURES = ("records", "live-keys", "tombstone-share", "obsolete-share", "duplicate-factor")


def census(page: Page) -> dict[str, str]:
    return {name: page.locator(f"[data-census={name}]").inner_text().strip() for name in FIGURES}


def test_each_partition_is_shown_with_its_ends_its_leader_and_what_is_in_it(visitor: Visitor, site: Site) -> None:
    create_topic(site.connection, "counted", partitions=2)
    # Of 8 records 3 are of one key, and one is a tombstone: 5 keys are live, 2 records obsolete.
    keys = ("a", "b", "c", "d", "e", "a", "a")
    write(site.connection, "counted", *((key, b"1") for key in keys), ("f", None))
    page = visitor.open("#/topics/counted")
    expect(page.locator("[data-census=records]")).to_contain_text("8", timeout=40_000)
    found = census(page)
    assert "5" in found["live-keys"]
    assert "25" in found["obsolete-share"], found
    assert "1.6" in found["duplicate-factor"], found
    assert "12.5" in found["tombstone-share"], found
    partitions = page.get_by_role("table", name="Partitions")
    expect(partitions.locator("tr[data-partition]")).to_have_count(2)


def test_what_is_not_known_of_a_topic_is_not_shown_as_zero(visitor: Visitor, site: Site) -> None:
    create_topic(site.connection, "nothing-yet", partitions=1)
    page = visitor.open("#/topics/nothing-yet")
    expect(page.locator("[data-census=records]")).to_contain_text("0", timeout=40_000)
    # No records have no share.
    found = census(page)
    assert not any("0" in found[name] for name in ("obsolete-share", "duplicate-factor", "tombstone-share")), found


def test_the_topics_are_listed_and_lead_to_their_pages(visitor: Visitor) -> None:
    page = visitor.open("#/topics")
    listed = page.get_by_role("table", name="Topics")
    expect(listed.locator("tr[data-topic=user-profiles]")).to_contain_text("compact")
    listed.locator("tr[data-topic=user-profiles]").get_by_role("link", name="user-profiles").click()
    expect(page.get_by_role("heading", level=1, name="user-profiles")).to_be_visible()


def test_compact_now_shows_before_and_after(visitor: Visitor, site: Site) -> None:
    create_topic(site.connection, "crowded", partitions=1)
    write(site.connection, "crowded", *((f"key-{number % 7}", b'"%d"' % number) for number in range(210)))
    page = visitor.open("#/topics/crowded")
    expect(page.locator("[data-census=records]")).to_contain_text("210", timeout=40_000)
    page.get_by_role("button", name="Compact now").click()
    compaction = page.get_by_role("region", name="Compaction", exact=True)
    done = page.locator("[data-compaction=done]")
    expect(done).to_be_visible(timeout=60_000)
    left = len(records_of(site.connection, "crowded"))
    assert left == 7
    expect(compaction).to_contain_text("210")
    assert " 7 " in f" {' '.join(compaction.inner_text().split())} "
    expect(page.locator("[data-census=records]")).to_contain_text("7", timeout=60_000)


def test_a_topic_that_is_not_compacted_can_not_be(visitor: Visitor) -> None:
    page = visitor.open("#/topics/actions")
    expect(page.get_by_role("heading", level=1, name="actions")).to_be_visible()
    expect(page.get_by_role("table", name="Partitions").locator("tr[data-partition]")).to_have_count(5)
    button = page.get_by_role("button", name="Compact now")
    assert button.count() == 0 or button.is_disabled()
