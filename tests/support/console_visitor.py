"""A visitor of the console: opens pages in a real browser and takes note of everything that should not be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Request

Scheme = Literal["light", "dark"]
Motion = Literal["reduce", "no-preference"]
WIDE, NARROW = (1280, 800), (360, 740)
# What is asked of every view: WCAG 2.2 at level AA, and what axe's makers hold to be good practice.
_AXE = """async () => {
  // What begins to change its colours is not to be judged half-way.
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  const told = await axe.run(document, {resultTypes: ['violations']});
  return told.violations.map(({id, help, nodes}) => id + ': ' + help + '\\n' + nodes.slice(0, 5).map(
    (node) => '  ' + node.target.join(' ') + '\\n    ' + node.any.concat(node.all, node.none).map(
      (check) => check.message).join('\\n    ')).join('\\n'));
}"""


class Tab:
    """A tab that is used again: another one would take a second or more to begin. Who visits is told what it says."""

    def __init__(self, browser: Browser) -> None:
        self.visitor: Visitor | None = None
        context = browser.new_context(locale="en-GB", timezone_id="UTC")
        context.set_default_timeout(20_000)
        context.on("console", lambda message: self._visited(lambda by: by.note_message(message)))
        context.on("weberror", lambda failure: self._visited(lambda by: by.note(f"not caught: {failure.error}")))
        context.on("request", lambda request: self._visited(lambda by: by.note_request(request)))
        context.on("dialog", self._dismiss)
        self.page = context.new_page()

    def go(self, url: str, view: str) -> None:
        """A page that knows nothing of the one before, whatever that was."""
        if not self.page.url.startswith(f"{url}/"):
            self.page.goto(f"{url}/{view}")
            return
        # With another address after the # alone it would be the same page.
        self.page.evaluate(
            "(to) => { localStorage.clear(); sessionStorage.clear(); history.replaceState(null, '', to) }", view
        )
        self.page.reload()

    def close(self) -> None:
        self.page.context.close()

    def _visited(self, tell: Callable[[Visitor], None]) -> None:
        if self.visitor is not None:
            tell(self.visitor)

    def _dismiss(self, dialog: Dialog) -> None:
        self._visited(lambda by: by.note(f"a dialog: {dialog.message}"))
        dialog.dismiss()


class Visitor:
    """Opens pages of one server; what they complain of, and what they ask of others, is in `complaints`."""

    def __init__(self, browser: Browser, url: str, tab: Tab | None = None) -> None:
        self.url = url
        self.requests: list[Request] = []
        self._browser = browser
        self._tab = tab
        self._own: list[Tab] = []
        self._noted: list[str] = []
        self._expected: list[str] = []

    def open(
        self,
        view: str = "#/",
        *,
        scheme: Scheme = "light",
        size: tuple[int, int] = WIDE,
        motion: Motion = "reduce",
        fresh: bool = False,
    ) -> Page:
        """The view, in the one tab that there is; `fresh`: in a browser that has never been here."""
        tab = self._tab
        if tab is None or fresh:
            tab = Tab(self._browser)
            self._own.append(tab)
        page = tab.page
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if not page.url.startswith(f"{self.url}/"):
            # What a page of another server still says is nothing of ours.
            page.goto("about:blank")
        tab.visitor = self
        tab.go(self.url, view)
        return page

    def expects(self, *patterns: str) -> None:
        """Complaints in which one of these is found are part of the test."""
        self._expected += patterns

    @property
    def complaints(self) -> list[str]:
        return [each for each in self._noted if not any(re.search(pattern, each) for pattern in self._expected)]

    def leave(self) -> None:
        if self._tab is not None:
            self._tab.visitor = None
        for tab in self._own:
            tab.close()

    def note(self, complaint: str) -> None:
        self._noted.append(complaint)

    def note_message(self, message: ConsoleMessage) -> None:
        # A breach of the Content-Security-Policy is an error, too.
        if message.type in ("error", "warning"):
            self.note(f"{message.type}: {message.text} ({message.location.get('url')})")

    def note_request(self, request: Request) -> None:
        self.requests.append(request)
        if not request.url.startswith(f"{self.url}/"):
            self.note(f"a request to another: {request.url[:200]}")


@contextmanager
def visiting(browser: Browser, url: str, tab: Tab | None = None) -> Iterator[Visitor]:
    visitor = Visitor(browser, url, tab)
    try:
        yield visitor
    finally:
        visitor.leave()
    assert not visitor.complaints, "\n".join(visitor.complaints)


def violations(page: Page) -> list[str]:
    """What axe finds on the page as it is now."""
    page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(_AXE)
    return found


def cells(rows: Locator, attribute: str) -> list[str | None]:
    """An attribute of each of the elements, in their order."""
    told: list[str | None] = rows.evaluate_all(f"(found) => found.map((each) => each.getAttribute('{attribute}'))")
    return told


def stored_by_page(page: Page) -> Sequence[Any]:
    """All that the page keeps beyond its own life."""
    kept: Sequence[Any] = page.evaluate(
        """async () => [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href,
        JSON.stringify(history.state), await indexedDB.databases(), await caches.keys(), window.name]"""
    )
    return kept
