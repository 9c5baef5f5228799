"""Every view by its own address, as a person who was sent a link sees it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from support.console_site import Site
from support.console_views import VIEWS, View, expect_view
from support.console_visitor import NARROW, WIDE, Scheme, Visitor, stored_by_page, violations

LOOKS: tuple[tuple[tuple[int, int], Scheme], ...] = ((WIDE, "light"), (WIDE, "dark"), (NARROW, "dark"))
LINKS = ("Overview", "Leaderboard", "Tables", "Changes", "Topics")


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_link_leads_to_a_view_that_names_itself_and_in_which_axe_finds_nothing(visitor: Visitor, view: View) -> None:
    page = visitor.open(view.link)
    expect_view(page, view)
    expect(page).to_have_title(re.compile(rf"^(.* · )?{view.heading} · lastword$"))
    here = page.get_by_role("navigation", name="Views").locator("[aria-current=page]")
    expect(here).to_have_count(1)
    for (width, height), scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], f"{scheme}, {width} wide"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "it must be moved sideways to be read"


def test_the_views_are_reached_from_each_other_and_back_goes_back(visitor: Visitor) -> None:
    page = visitor.open()
    expect_view(page, VIEWS["overview"])
    views = page.get_by_role("navigation", name="Views")
    for link in (*LINKS[1:], LINKS[0], "Changes", "Topics"):
        views.get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", level=1, name=link, exact=True)).to_be_focused()
    page.go_back()
    expect_view(page, VIEWS["changes"])
    page.go_forward()
    expect_view(page, VIEWS["topics"])


def test_a_link_to_nowhere_says_so(visitor: Visitor) -> None:
    page = visitor.open("#/no/such/view")
    expect(page.get_by_role("main")).to_contain_text("no such view")
    for link, words in {"#/tables/nobody": "nobody", "#/topics/nothing": "nothing"}.items():
        page.goto(f"{visitor.url}/{link}")
        expect(page.get_by_role("main")).to_contain_text(words)
    page.goto(f"{visitor.url}/#/tables/users/user-99")
    expect(page.locator("[data-state-note=missing]")).to_be_visible()


def test_axe_would_have_found_something(visitor: Visitor) -> None:
    page = visitor.open()
    expect_view(page, VIEWS["overview"])
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [told.split(":")[0] for told in violations(page)] == ["button-name"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_until_the_button_says_otherwise(visitor: Visitor, scheme: Scheme) -> None:
    page = visitor.open(scheme=scheme)
    dark, light = "dark", "light"
    assert brightness(page) == scheme
    button = page.get_by_role("button", name="Theme")
    seen = set()
    for _ in range(3):
        button.click()
        seen.add(brightness(page))
    assert seen == {dark, light}


def brightness(page: Page) -> str:
    """By what is painted behind the text."""
    red, green, blue = page.evaluate(
        """() => {
          const pixel = document.createElement('canvas').getContext('2d');
          pixel.fillStyle = getComputedStyle(document.body).backgroundColor;
          pixel.fillRect(0, 0, 1, 1);
          return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        }"""
    )
    return "light" if red + green + blue > 384 else "dark"


def test_the_first_view_takes_less_than_150_kb(visitor: Visitor) -> None:
    page = visitor.open(fresh=True)
    expect_view(page, VIEWS["overview"])
    sizes = {request.url: len(response.body()) for request in visitor.requests if (response := request.response())}
    assert sum(sizes.values()) < 150_000, sizes
    assert any(url.endswith(".js") for url in sizes)
    assert any(url.endswith(".css") for url in sizes)


def test_a_second_visit_fetches_no_file_of_the_page_again(visitor: Visitor) -> None:
    page = visitor.open(fresh=True)
    expect_view(page, VIEWS["overview"])
    page.reload()
    expect_view(page, VIEWS["overview"])
    again = page.evaluate(
        """() => performance.getEntriesByType('resource').filter((each) => each.name.includes('/console/')).map(
        (each) => [each.name, each.responseStatus, each.encodedBodySize, each.transferSize])"""
    )
    assert len(again) > 2
    # 304, which costs headers alone.
    assert [each for each in again if each[3] > 500] == []


def test_nothing_but_the_choice_of_colours_outlives_the_page(visitor: Visitor) -> None:
    page = visitor.open("#/tables/users/user-3", fresh=True)
    expect_view(page, VIEWS["row"])
    local, session, cookie, _, state, databases, caches, name = stored_by_page(page)
    assert (session, cookie, databases, caches, name) == ("{}", "", [], [], "")
    assert len(local) < 100
    assert "user" not in (state or "")


def test_one_stream_at_most_is_open(visitor: Visitor, site: Site) -> None:
    page = visitor.open()
    open_streams = streams(visitor)
    for view in ("board", "changes", "table", "topics"):
        page.goto(f"{site.url}/{VIEWS[view].link}")
        expect_view(page, VIEWS[view])
        open_streams = streams(visitor)
        assert len(open_streams) == (0 if view == "topics" else 1), (view, open_streams)


def streams(visitor: Visitor) -> list[str]:
    """Change streams that have neither ended nor failed."""
    asked = [request for request in visitor.requests if "/changes" in request.url]
    return [each.url for each in asked if each.failure is None and each.timing["responseEnd"] < 0]
