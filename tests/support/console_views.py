"""The views of the console: the link, the heading and the contents of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from playwright.sync_api import Locator, Page, expect


@dataclass(frozen=True, kw_only=True)
class View:
    link: str
    heading: str
    # The elements, by role and name, that are there after the first answers.
    shows: tuple[tuple[str, str], ...]


VIEWS = {
    "overview": View(link="#/", heading="Overview", shows=(("region", "Numbers"), ("region", "Flow"))),
    "board": View(link="#/board", heading="Leaderboard", shows=(("table", "Leaderboard"),)),
    "tables": View(link="#/tables", heading="Tables", shows=(("table", "Served tables"),)),
    "table": View(link="#/tables/users", heading="users", shows=(("table", "Rows of users"),)),
    "found": View(link="#/tables/users?prefix=user-1", heading="users", shows=(("table", "Rows of users"),)),
    "row": View(link="#/tables/users/user-3", heading="users", shows=(("region", "Row user-3"),)),
    "changes": View(link="#/changes?tables=users", heading="Changes", shows=(("button", "Pause"),)),
    "topics": View(link="#/topics", heading="Topics", shows=(("table", "Topics"),)),
    "topic": View(
        link="#/topics/user-profiles",
        heading="user-profiles",
        shows=(("region", "Census"), ("table", "Partitions"), ("region", "Over time")),
    ),
}


def expect_view(page: Page, view: View) -> None:
    """Waits until the view shows its contents and loads nothing more."""
    expect(page.get_by_role("heading", level=1, name=view.heading, exact=True)).to_be_visible()
    for role, name in view.shows:
        expect(page.get_by_role(role, name=name, exact=True)).to_be_visible()  # type: ignore[arg-type]
    expect(page.locator("[data-link]")).to_have_attribute("data-link", "live")
    expect(page.locator("[data-state-note=loading]")).to_have_count(0)


def expect_streaming(page: Page) -> None:
    """Waits until the page gets every change that is written from now on."""
    expect(page.locator("[data-link]")).to_have_text("Live, every change")


def row(page: Page, key: str) -> Locator:
    return page.locator(f"tr[data-key='{key}']")


def fill(page: Page, dialog: str, **fields: str) -> None:
    """Fills the fields of a dialog, by their labels, and writes."""
    opened = page.get_by_role("dialog", name=dialog)
    for label, text in fields.items():
        opened.get_by_role("textbox", name=label).fill(text)
    opened.get_by_role("button", name="Write", exact=True).click()


def time_text(ms: int) -> str:
    """A time as the page shows it in the time zone UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%-d %b %Y, %H:%M:%S")
