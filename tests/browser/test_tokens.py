"""A server that asks for tokens: the page asks for one, sends it in a header, and keeps it nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.console_site import Site
from support.console_views import fill, row
from support.console_visitor import Tab, Visitor, stored_by_page, violations, visiting

READ, WRITE = "read-0123456789abcdef", "write-0123456789abcdef"


@pytest.fixture(scope="module")
def locked(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that lets in only who has a token."""
    folder = tmp_path_factory.mktemp("locked")
    tokens = folder / "tokens"
    tokens.write_text(f"read {READ}\nwrite {WRITE}\n")
    tokens.chmod(0o600)
    with site.another(folder / "replica", "--token-file", str(tokens)) as instance:
        yield instance.url


@pytest.fixture
def visitor(browser: Browser, locked: str, tab: Tab) -> Iterator[Visitor]:
    with visiting(browser, locked, tab) as made:
        # The browser itself says so for every answer of that kind.
        made.expects("status of 40[13]")
        yield made


def give(page: Page, token: str) -> None:
    asked = page.get_by_role("dialog", name="Token needed")
    asked.get_by_role("textbox", name="Token").fill(token)
    asked.get_by_role("button", name="Use token").click()


def test_a_token_is_asked_for_with_where_they_are_again_until_it_is_right(
    visitor: Visitor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = visitor.open("#/tables/users?prefix=user-")
    asked = page.get_by_role("dialog", name="Token needed")
    expect(asked).to_be_visible()
    expect(asked).to_contain_text("For lastword up --secure, lastword status names the file; for lastword serve, it is")
    # Where it is on the disk is nobody's business who has no token.
    assert str(tmp_path_factory.getbasetemp()) not in page.content()
    assert violations(page) == []
    give(page, "wrong-0123456789abcdef")
    expect(asked).to_be_visible()
    expect(row(page, "user-3")).to_have_count(0)
    give(page, READ)
    expect(row(page, "user-3")).to_be_visible()
    expect(asked).to_have_count(0)


def test_the_token_is_in_no_address_and_no_storage_and_gone_after_a_reload(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open("#/tables/users?prefix=user-")
    give(page, WRITE)
    expect(row(page, "user-3")).to_be_visible()
    page.get_by_role("button", name="Add row").click()
    fill(page, "Add a row", Key="user-by-token", Value="1")
    expect(row(page, "user-by-token")).to_be_visible()
    assert WRITE not in json.dumps([stored_by_page(page), page.content()])
    page.context.storage_state(path=tmp_path / "state", indexed_db=True)
    assert WRITE not in (tmp_path / "state").read_text()
    assert [request.url for request in visitor.requests if "0123456789" in request.url] == []
    sent = {request.headers.get("authorization") for request in visitor.requests if "/tables/" in request.url}
    assert f"Bearer {WRITE}" in sent
    page.reload()
    expect(page.get_by_role("dialog", name="Token needed")).to_be_visible()
    expect(row(page, "user-3")).to_have_count(0)


def test_a_token_that_may_only_read_is_told_that_it_may_not_write(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/tables/users?prefix=user-")
    give(page, READ)
    expect(row(page, "user-3")).to_be_visible()
    page.get_by_role("button", name="Add row").click()
    fill(page, "Add a row", Key="user-forbidden", Value="1")
    expect(page.locator("[data-refused=forbidden]")).to_be_visible()
    assert site.instance.ask("/tables/users/rows/user-forbidden").status == 404
