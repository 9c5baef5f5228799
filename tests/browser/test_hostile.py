"""Values and keys that mean harm, or are only strange: they are shown as text, and nothing of them runs."""

from __future__ import annotations

import json
from urllib.parse import quote

from playwright.sync_api import Page, expect

from support.boards import action, write
from support.console_site import Site
from support.console_views import expect_streaming
from support.console_visitor import Visitor, violations

RUN = "globalThis.harmed = (globalThis.harmed ?? 0) + 1"
HOSTILE = {
    "a script": f"<script>{RUN}</script>",
    "an image": f"<img src=x onerror='{RUN}'>",
    "a drawing": f"<svg/onload='{RUN}'><style>*{{display:none}}</style>",
    "an end of the page": f"</pre></td></table></main></body><script>{RUN}</script>",
    "an address": f"javascript:{RUN}",
    "a template": f"${{{RUN}}} {{{{{RUN}}}}} &lt;b&gt; &amp;",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 (1)",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f50c",
}


def unharmed(page: Page) -> None:
    assert page.evaluate("globalThis.harmed") is None
    assert page.evaluate("getComputedStyle(document.querySelector('main')).display") != "none"
    assert page.locator("main script, main img[src=x], main svg[onload]").count() == 0


def test_markup_in_a_key_a_field_and_a_value_is_shown_as_it_was_written(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=odd")
    expect_streaming(page)
    with site.table("odd") as odd:
        for text in HOSTILE.values():
            odd.put(f"html {text}", {text: text, "list": [text]})
    changes = page.get_by_role("table", name="Changes")
    for text in HOSTILE.values():
        expect(changes.get_by_role("rowheader", name=f"html {text}", exact=True)).to_be_visible()
    unharmed(page)
    for text in HOSTILE.values():
        page.goto(f"{site.url}/#/tables/odd?prefix={quote('html ', safe='')}")
        page.get_by_role("table", name="Rows of odd").get_by_role("link", name=f"html {text}", exact=True).click()
        value = page.get_by_role("region", name=f"Row html {text}", exact=True).locator("[data-value]")
        expect(value).to_contain_text(text)
        assert value.inner_text().count(text) == 3
        unharmed(page)


def test_a_team_of_any_name_and_what_it_sent_are_text(visitor: Visitor, site: Site) -> None:
    team = f"<img src=x onerror='{RUN}'>"
    write(site.connection, "actions", (None, action(team)), (None, f"<script>{RUN}</script>".encode()))
    page = visitor.open("#/board")
    expect(page.get_by_role("rowheader", name=team)).to_be_visible()
    expect(page.get_by_role("table", name="Last refused records")).to_contain_text(f"<script>{RUN}</script>")
    unharmed(page)


def test_a_nul_is_seen_and_cuts_nothing_off(visitor: Visitor, site: Site) -> None:
    with site.table("odd") as odd:
        odd.put("nul", {"before\0after": "left\0right", "then": "more"})
    page = visitor.open("#/tables/odd/nul")
    value = page.locator("[data-value]")
    for text in ("before", "after", "left", "right", "then", "more"):
        expect(value).to_contain_text(text)
    assert "leftNULright" in value.inner_text()


def test_letters_that_turn_others_round_are_named_and_turn_nothing(visitor: Visitor, site: Site) -> None:
    with site.table("odd") as odd:
        odd.put("turned", {"file": "photo\u202egpj.exe"})
    page = visitor.open("#/tables/odd?prefix=turned")
    for shown in (page.locator("tr[data-key=turned]"), page.locator("[data-value]")):
        expect(shown).to_contain_text("exe")
        assert "photoU+202Egpj.exe" in shown.inner_text()
        assert "\u202e" not in shown.inner_text()
        if page.locator("[data-value]").count() == 0:
            page.get_by_role("link", name="turned").click()


def test_numbers_are_shown_to_the_last_digit(visitor: Visitor, site: Site) -> None:
    body = b'{"id": 12345678901234567890, "share": 0.10, "tiny": 1e-400}'
    site.instance.ask("/tables/odd/rows/digits", "PUT", body)
    page = visitor.open("#/tables/odd/digits")
    for text in ("12345678901234567890", "0.10", "1e-400"):
        expect(page.locator("[data-value]")).to_contain_text(text)


def test_a_field_named_as_the_language_names_its_own_is_a_field(visitor: Visitor, site: Site) -> None:
    body = b'{"__proto__": {"harmed": 1}, "constructor": "mine", "toString": null, "a": 1, "a": 2}'
    site.instance.ask("/tables/odd/rows/__proto__", "PUT", body)
    page = visitor.open("#/tables/odd/__proto__")
    for text in ("__proto__", "harmed", "constructor", "mine", "toString"):
        expect(page.locator("[data-value]")).to_contain_text(text)
    unharmed(page)


def test_a_megabyte_of_json_is_shown_and_the_page_stays_usable(visitor: Visitor, site: Site) -> None:
    value = {"parts": [{"number": n, "text": "x" * 60} for n in range(12_000)], "last": "the very end"}
    with site.table("odd") as odd:
        odd.put("megabyte", value)
    page = visitor.open("#/tables/odd?prefix=megabyte")
    listed = page.locator("tr[data-key=megabyte]")
    expect(listed).to_be_visible()
    assert len(listed.inner_text()) < 2000, "a row of a list is short"
    listed.get_by_role("link").click()
    detail = page.get_by_role("region", name="Row megabyte")
    expect(detail.locator("[data-value]")).to_contain_text("parts")
    expect(detail.locator("[data-value]")).to_contain_text("the very end")
    assert page.evaluate("document.querySelectorAll('main *').length") < 20_000
    detail.get_by_role("button", name="Close").click()
    expect(detail).to_have_count(0)


def test_a_value_that_the_codec_can_not_read_is_shown_as_bytes_with_the_reason(visitor: Visitor, site: Site) -> None:
    write(site.connection, "odd", ("broken", b"\xff{not json"))
    page = visitor.open("#/tables/odd/broken")
    detail = page.get_by_role("region", name="Row broken")
    expect(detail).to_contain_text("not JSON")
    value = detail.locator("[data-value]")
    expect(value).to_contain_text("ff 7b 6e 6f 74 20 6a 73 6f 6e")
    detail.get_by_role("button", name="Base64").click()
    expect(value).to_contain_text("/3tub3QganNvbg==")
    expect(value.get_by_role("button", name="Show more")).to_be_hidden()


def test_text_and_bytes_are_shown_by_their_codecs(visitor: Visitor, site: Site) -> None:
    write(site.connection, "plain", ("lines", b"first\n  second\tthird"))
    write(site.connection, "packed", ("image", bytes(range(256))))
    page = visitor.open("#/tables/plain/lines")
    expect(page.locator("[data-value]")).to_contain_text("first\n  second\tthird", use_inner_text=True)
    page = visitor.open("#/tables/packed/image")
    expect(page.locator("[data-value]")).to_contain_text("78 79 7a 7b 7c 7d 7e 7f")


KEYS = ["a/b/c", "50%", "?x=1#y", "..", "ключ", "%2F", "a&b=c", "\u202eright", "+", json.dumps({"a": 1})]


def test_a_link_to_a_key_of_any_letters_leads_to_its_row(visitor: Visitor, site: Site) -> None:
    with site.table("odd") as odd:
        odd.put_many((key, {"found": key}) for key in KEYS)
    page = visitor.open("#/tables/odd")
    for key in KEYS:
        page.goto(f"{site.url}/#/tables/odd/{quote(key, safe='')}")
        expect(page.locator("[data-detail]")).to_have_attribute("aria-label", f"Row {key}")
        expect(page.locator("[data-value]")).to_contain_text("found")
    assert violations(page) == []


def test_a_key_of_nothing_but_space_can_be_seen(visitor: Visitor, site: Site) -> None:
    with site.table("plain") as plain:
        plain.put(" ", "found")
    page = visitor.open("#/tables/plain/%20")
    expect(page.locator("[data-value]")).to_contain_text("found")
    assert violations(page) == []
