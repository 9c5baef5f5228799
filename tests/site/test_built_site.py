"""The site that `make site` has built: its search, its start page, and that it asks no other host for anything."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from gather_pages import PAGES, ROOT

from support.documented_names import documented_names

pytestmark = pytest.mark.long
SITE = ROOT / "site"


def address(page: Path) -> str:
    """Where the site has a page: `docs/http/` for docs/http.md, the folder for a README.md or an index.md."""
    path = page.relative_to(ROOT)
    folder = path.parent if path.stem in ("README", "index") else path.with_suffix("")
    return "" if folder == Path() else f"{folder}/"


@pytest.fixture(scope="module")
def searched() -> dict[str, str]:
    """The text that the search looks in, by address."""
    index = SITE / "search.json"
    assert index.exists(), "there is no site: run  make site"
    texts: dict[str, str] = {}
    for item in json.loads(index.read_text())["items"]:
        text = html.unescape(re.sub(r"<[^>]+>", "", f"{item['title']} {item['text']}"))
        where = item["location"].partition("#")[0]
        texts[where] = f"{texts.get(where, '')}\n{text}"
    return texts


def test_the_search_knows_every_page(searched: dict[str, str]) -> None:
    assert {*searched} == {address(page) for page in PAGES}


def test_the_search_finds_every_verb_setting_route_and_error_code(searched: dict[str, str]) -> None:
    text = "\n".join(searched.values())
    assert [name for name in documented_names() if name not in text] == []


def test_the_start_page_links_to_every_page() -> None:
    start = (SITE / "index.html").read_text()
    linked = {link.removeprefix("./") for link in re.findall(r'href="([^"#:]*)"', start)}
    assert {address(page) for page in PAGES} - linked - {""} == set()


def test_a_page_loads_nothing_from_another_host() -> None:
    loaded = re.compile(r'<(?:link|script|img)[^>]+(?:src|href)="(https?:[^"]*)"')
    found = {url for page in SITE.rglob("*.html") for url in loaded.findall(page.read_text())}
    assert found == set()
