"""The pages as one text: every link leads to a file and an anchor, every page is near, every name is on one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from gather_pages import PAGES, ROOT, gather, links

from support.documented_names import documented_names

_CODE_BLOCK = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_IDS = [str(page.relative_to(ROOT)) for page in PAGES]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    made: list[str] = []
    for heading in _HEADING.findall(_CODE_BLOCK.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words).strip().lower().replace(" ", "-")
        made.append(f"{anchor}-{made.count(anchor)}" if anchor in made else anchor)
    return set(made)


def read_differently(text: str) -> list[str]:
    """The lines that a forge and the site show differently: a list without an empty line before it, `\\|` in code."""
    found = []
    before = ""
    for line in _CODE_BLOCK.sub("", text).splitlines():
        is_item = re.match(r"([-*]|\d+\.) ", line)
        if is_item and before and not re.match(r"([-*]|\d+\.) |\s", before):
            found.append(line)
        if re.search(r"`[^`]*\\\|[^`]*`", line):
            found.append(line)
        before = line
    return found


def pages_in(nav: list[Any]) -> list[str]:
    """The pages of a navigation, of all its parts."""
    pages: list[str] = []
    for entry in nav:
        if isinstance(entry, str):
            pages.append(entry)
        else:
            for inner in entry.values():
                pages += pages_in(inner if isinstance(inner, list) else [inner])
    return pages


def test_anchors_are_made_as_forges_make_them() -> None:
    text = "# What `up` runs\n```sh\n# no heading\n```\n## A / b: [c](d.md)\n## A / b: c\n"
    assert anchors(text) == {"what-up-runs", "a--b-c", "a--b-c-1"}


@pytest.mark.parametrize("page", PAGES, ids=_IDS)
def test_every_link_leads_to_a_file_and_to_an_anchor_of_it(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(target.read_text()), f"{page.name} links to {target.name}#{anchor}"


@pytest.mark.parametrize("text", ["one of two:\n- a\n", "| `a\\|b` | c |\n"])
def test_a_line_that_is_read_differently_is_noticed(text: str) -> None:
    assert len(read_differently(text)) == 1


@pytest.mark.parametrize("page", PAGES, ids=_IDS)
def test_a_page_looks_the_same_on_a_forge_and_on_the_site(page: Path) -> None:
    assert read_differently(page.read_text()) == []


def test_every_page_is_two_links_from_the_start_page() -> None:
    start = ROOT / "README.md"
    near = {target for target, _ in links(start)}
    reached = {start, *near, *(target for page in near if page.suffix == ".md" for target, _ in links(page))}
    assert {*PAGES} - reached == set()


def test_every_page_is_once_in_the_navigation_of_the_site() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    assert sorted(pages_in(nav)) == sorted(_IDS)


def test_the_gathered_pages_have_the_files_that_they_link_to(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "old.md").write_text("# A page of an earlier run")
    gather(folder)
    assert (folder / "docs" / "http.md").read_text() == (ROOT / "docs" / "http.md").read_text()
    assert (folder / "examples" / "follow.py").exists()
    assert not (folder / "docs" / "old.md").exists()


def test_every_verb_setting_route_and_error_code_is_on_a_page() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    names = documented_names()
    assert len(names) > 100
    assert [name for name in names if name not in text] == []
