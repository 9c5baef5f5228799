"""A real Chromium, and a real `lastword serve` on a real cluster, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from support.chromium import chromium_of, find_chromium
from support.console_site import Site, site_in
from support.console_visitor import Tab, Visitor, visiting
from support.system_packages import NotInstalled, skip_or_fail

# Other tests may have the processor.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        path = find_chromium()
    except NotInstalled as why:
        skip_or_fail(f"no browser: {why}, or set LASTWORD_CHROMIUM to the path of one")
    with chromium_of(path, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything but the pipeline; a test writes keys and teams of its own, and leaves it running."""
    with site_in(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Tab]:
    made = Tab(browser)
    yield made
    made.close()


@pytest.fixture
def visitor(browser: Browser, site: Site, tab: Tab) -> Iterator[Visitor]:
    """Of the shared server. No test passes whose pages said an error or asked another host."""
    with visiting(browser, site.url, tab) as made:
        yield made
