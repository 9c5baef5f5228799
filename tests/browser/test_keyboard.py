"""All of it without a mouse: every step is Tab, Enter, Space, Escape or typed text, and where one is can be seen."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from support.console_site import Site
from support.console_visitor import Visitor

_SEEN = """(element) => {
  const style = getComputedStyle(element);
  return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 || style.boxShadow !== 'none';
}"""


def tab_to(page: Page, wanted: Locator, *, at_most: int = 60) -> None:
    """Presses Tab until the element has the focus; it must be seen to have it."""
    expect(wanted).to_be_visible()
    for _ in range(at_most):
        page.keyboard.press("Tab")
        if wanted.evaluate("(element) => element === document.activeElement"):
            assert wanted.evaluate(_SEEN), "the focus can't be seen"
            return
    raise AssertionError(f"{at_most} tabs do not lead to {wanted}")


def test_a_row_is_found_read_and_written_without_a_mouse(visitor: Visitor, site: Site) -> None:
    with site.table("users") as users:
        users.put("keyed", {"name": "Kay"})
    page = visitor.open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    tab_to(page, page.get_by_role("navigation", name="Views").get_by_role("link", name="Tables"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("table", name="Served tables").get_by_role("link", name="users", exact=True))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("searchbox", name="Find by key or prefix"))
    page.keyboard.type("keyed")
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-key]")).to_have_count(1)
    tab_to(page, page.get_by_role("table", name="Rows of users").get_by_role("link", name="keyed"))
    page.keyboard.press("Enter")
    detail = page.get_by_role("region", name="Row keyed")
    tab_to(page, detail.get_by_role("button", name="Edit"))
    page.keyboard.press("Enter")
    value = page.get_by_role("dialog", name="Edit keyed").get_by_role("textbox", name="Value")
    expect(value).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text('{"name": "Kim"}')
    tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Write", exact=True))
    page.keyboard.press("Enter")
    expect(page.locator("[data-ack]")).to_be_visible()
    expect(detail.locator("[data-value]")).to_contain_text("Kim")
    tab_to(page, detail.get_by_role("button", name="Delete"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Delete keyed?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    # Back where one was.
    expect(detail.get_by_role("button", name="Delete")).to_be_focused()
    assert site.instance.ask("/tables/users/rows/keyed").json["value"] == {"name": "Kim"}


def test_the_other_views_are_used_without_a_mouse(visitor: Visitor) -> None:
    page = visitor.open()
    views = page.get_by_role("navigation", name="Views")
    tab_to(page, views.get_by_role("link", name="Leaderboard"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Leaderboard")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    tab_to(page, views.get_by_role("link", name="Changes"), at_most=120)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Changes")).to_be_focused()
    tab_to(page, page.get_by_role("button", name="Pause"))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    tab_to(page, page.get_by_role("group", name="Tables").get_by_role("checkbox").first)
    page.keyboard.press("Space")
    tab_to(page, views.get_by_role("link", name="Topics"), at_most=120)
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("table", name="Topics").get_by_role("link", name="actions"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="actions")).to_be_focused()


def test_the_skip_link_leads_past_the_navigation(visitor: Visitor) -> None:
    page = visitor.open("#/tables")
    expect(page.get_by_role("heading", level=1, name="Tables")).to_be_visible()
    tab_to(page, page.get_by_role("link", name="Skip to content"))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    inside = page.evaluate("document.querySelector('main').contains(document.activeElement)")
    assert inside
    # A link within the page is no view.
    expect(page.get_by_role("heading", level=1, name="Tables")).to_be_visible()
