"""A visitor of the console: opens pages in a real browser and notes everything that should not happen."""

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
# The rules for every view: WCAG 2.2 at level AA, and the good practices of axe.
_AXE = """async () => {
  // Three frames: no element is judged in the middle of a change of colours.
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  const result = await axe.run(document, {resultTypes: ['violations']});
  return result.violations.map(({id, help, nodes}) => id + ': ' + help + '\\n' + nodes.slice(0, 5).map(
    (node) => '  ' + node.target.join(' ') + '\\n    ' + node.any.concat(node.all, node.none).map(
      (check) => check.message).join('\\n    ')).join('\\n'));
}"""


class Tab:
    """A tab that is used again, because a new one takes a second or more. The visitor gets its messages."""

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
        """Opens a page without any state of the page before."""
        if not self.page.url.startswith(f"{url}/"):
            self.page.goto(f"{url}/{view}")
            return
        # A change only after the # would not load the page again.
        self.page.evaluate(
            "(to) => { localStorage.clear(); sessionStorage.clear(); history.replaceState(null, '', to) }", view
        )
        self.page.reload()

    def close(self) -> None:
        self.page.context.close()

    def _visited(self, note: Callable[[Visitor], None]) -> None:
        if self.visitor is not None:
            note(self.visitor)

    def _dismiss(self, dialog: Dialog) -> None:
        self._visited(lambda by: by.note(f"a dialog: {dialog.message}"))
        dialog.dismiss()


class Visitor:
    """Opens pages of one server; `complaints` has their errors and their requests to other hosts."""

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
        """The view in the shared tab; with `fresh`, in a new tab without any state."""
        tab = self._tab
        if tab is None or fresh:
            tab = Tab(self._browser)
            self._own.append(tab)
        page = tab.page
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if not page.url.startswith(f"{self.url}/"):
            # Messages of a page of another server do not count.
            page.goto("about:blank")
        tab.visitor = self
        tab.go(self.url, view)
        return page

    def expects(self, *patterns: str) -> None:
        """Complaints that match one of these patterns are part of the test."""
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
            self.note(f"a request to another host: {request.url[:200]}")


@contextmanager
def visiting(browser: Browser, url: str, tab: Tab | None = None) -> Iterator[Visitor]:
    visitor = Visitor(browser, url, tab)
    try:
        yield visitor
    finally:
        visitor.leave()
    assert not visitor.complaints, "\n".join(visitor.complaints)


def violations(page: Page) -> list[str]:
    """The violations that axe finds on the page now."""
    page.evaluate(AXE_SCRIPT)
    violations: list[str] = page.evaluate(_AXE)
    return violations


def cells(rows: Locator, attribute: str) -> list[str | None]:
    """An attribute of each element, in order."""
    values: list[str | None] = rows.evaluate_all(
        f"(elements) => elements.map((each) => each.getAttribute('{attribute}'))"
    )
    return values


def stored_by_page(page: Page) -> Sequence[Any]:
    """Everything that the page stores beyond its life."""
    storage: Sequence[Any] = page.evaluate(
        """async () => [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href,
        JSON.stringify(history.state), await indexedDB.databases(), await caches.keys(), window.name]"""
    )
    return storage
