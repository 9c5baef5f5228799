"""The leaderboard as it moves."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from support.boards import act, action, stats, write
from support.console_site import Site
from support.console_visitor import Visitor, cells, visiting


def order(page: Page, *teams: str) -> list[str | None]:
    """Those teams, as they stand below each other."""
    return [team for team in cells(page.locator("tr[data-team]"), "data-team") if team in teams]


def cell(page: Page, team: str, name: str) -> str:
    return page.locator(f"tr[data-team='{team}'] [data-cell={name}]").inner_text().strip()


def test_ranks_reorder_and_a_new_team_finds_its_place(visitor: Visitor, site: Site) -> None:
    act(site.connection, *["red"] * 2, *["blue"] * 5)
    page = visitor.open("#/board")
    expect(page.locator("tr[data-team=red] [data-cell=actions]")).to_have_text("2")
    assert order(page, "red", "blue") == ["blue", "red"]

    act(site.connection, *["red"] * 9, *["green"] * 7)

    expect(page.locator("tr[data-team=red] [data-cell=actions]")).to_have_text("11")
    expect(page.locator("tr[data-team=green] [data-cell=actions]")).to_have_text("7")
    assert order(page, "red", "blue", "green") == ["red", "green", "blue"]
    ranks = cells(page.locator("tr[data-team]"), "data-rank")
    assert [int(rank or 0) for rank in ranks] == list(range(1, len(ranks) + 1))


def test_numbers_badges_and_resets_are_those_of_the_team(visitor: Visitor, site: Site) -> None:
    act(site.connection, "grey")
    write(site.connection, "team_stats", ("grey", stats("grey", 12_345, 678)))
    page = visitor.open("#/board")
    row = page.locator("tr[data-team=grey]")
    expect(row.locator("[data-cell=processed]")).to_have_text("12,345")
    assert (cell(page, "grey", "flagged"), cell(page, "grey", "actions")) == ("678", "1")
    expect(row.get_by_role("img", name="first valid action, since")).to_have_count(1)
    expect(row.get_by_role("img", name="first valid stats record, since")).to_have_count(1)
    expect(row.get_by_role("img", name="not yet: ")).to_have_count(2)
    # Nobody of it is there, and its lag is not known: that is no zero.
    assert cell(page, "grey", "lag") not in ("", "0")
    expect(page.locator("tr[data-team=grey][data-reset], tr[data-team=grey] [data-reset]")).to_have_count(0)
    write(site.connection, "team_stats", ("grey", stats("grey", 12, 6)))
    expect(page.locator("tr[data-team=grey][data-reset], tr[data-team=grey] [data-reset]")).to_have_count(1)


def test_what_was_refused_is_shown_with_the_reason(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/board")
    expect(page.locator("tr[data-team=team-1]")).to_be_visible()
    write(site.connection, "team_stats", ("brown", stats("white", 1, 1)))
    write(site.connection, "actions", (None, action("x" * 101)))
    region = page.get_by_role("region", name="Refused records")
    last = region.get_by_role("table", name="Last refused records")
    expect(last).to_contain_text("white")
    expect(last).to_contain_text("the key is not the team's name")
    expect(region.get_by_role("table", name="Refused by reason")).to_be_visible()


def test_a_server_without_a_board_says_so(browser: Browser, site: Site, tmp_path: Path) -> None:
    with site.another(tmp_path) as instance, visiting(browser, instance.url) as visitor:
        page = visitor.open("#/board")
        expect(page.locator("[data-state-note=absent]")).to_contain_text("--board")
