"""A thousand changes a second: the page paints at most ten times a second, no task takes long, and nothing is lost.

What is counted is what the browser did, as its own trace tells it. A task is measured by the time that it had the
processor, since other tests may have it meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.console_site import Site
from support.console_views import VIEWS, expect_streaming, expect_view
from support.console_visitor import Visitor

RATE = 1000
# All on one page of the table.
KEYS = 45
_ROUNDS = int(os.environ.get("LASTWORD_SOAK", "1"))


@contextmanager
def changes(site: Site) -> Iterator[list[int]]:
    """A thousand records a second to the table `busy` until the block ends; gives how many they are by now."""
    ended, sent = threading.Event(), [0]

    def write() -> None:
        producer = site.connection.producer(linger_ms=5)
        begun = time.monotonic()
        while not ended.wait(0.01):
            for number in range(sent[0], int((time.monotonic() - begun) * RATE)):
                value = json.dumps({"number": number, "name": f"name {number}", "tags": ["a", "b"]}).encode()
                producer.produce("busy", value, f"key-{number % KEYS:04}")
                sent[0] = number + 1
            producer.poll(0)
        assert producer.flush(30) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


class Doings:
    """What the main thread of a page did while it was looked at."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        main = {(each["pid"], each["tid"]) for each in events if each.get("args") == {"name": "CrRendererMain"}}
        done = sorted(
            (each for each in events if (each["pid"], each["tid"]) in main), key=lambda each: each.get("ts", 0)
        )
        frames = [each for each in done if each["name"] in ("Paint", "Commit")]
        # A frame that is handed on with nothing painted anew is none that the page asked for.
        self.paints = [
            each["ts"] / 1e6
            for before, each in pairwise(frames)
            if (before["name"], each["name"]) == ("Paint", "Commit")
        ]
        self.tasks_ms = [each["tdur"] / 1e3 for each in done if each["name"] == "RunTask" and "tdur" in each]

    @property
    def paints_a_second(self) -> float:
        return (len(self.paints) - 1) / (self.paints[-1] - self.paints[0]) if len(self.paints) > 1 else 0.0


def watched(browser: Browser, page: Page, seconds: float = 3) -> Doings:
    categories = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
    browser.start_tracing(page=page, categories=categories)
    page.wait_for_timeout(seconds * 1000)
    return Doings(json.loads(browser.stop_tracing())["traceEvents"])


@pytest.mark.parametrize("view", ["#/changes?tables=busy", "#/tables/busy"])
def test_a_thousand_changes_a_second_are_painted_ten_times_a_second_and_in_short_tasks(
    visitor: Visitor, browser: Browser, site: Site, view: str
) -> None:
    page = visitor.open(view, motion="no-preference")
    expect_streaming(page)
    with changes(site) as sent:
        expect(page.locator("tr[data-key]").first).to_be_visible()
        before = sent[0]
        doings = watched(browser, page)
        assert sent[0] - before > 2 * RATE
    # Ten, but for the edges of the trace; fewer where other programs have the processor. Without two paints it is 0.
    assert 0 < doings.paints_a_second < 10.5
    assert max(doings.tasks_ms) < 50
    newest = page.locator(f"tr[data-key='key-{(sent[0] - 1) % KEYS:04}']").first
    expect(newest).to_contain_text(str(sent[0] - 1))


def test_every_one_of_them_is_counted(visitor: Visitor, site: Site) -> None:
    page = visitor.open("#/changes?tables=busy")
    expect_streaming(page)
    with changes(site) as sent:
        page.wait_for_timeout(2000)
    seen = page.locator("[data-seen]")
    expect(seen).to_contain_text(re.compile(rf"\b{sent[0]:,}\b|\b{sent[0]}\b"))
    assert page.locator("tr[data-kind]").count() <= 500


def test_a_page_that_paints_more_often_or_is_busy_for_longer_is_found_out(visitor: Visitor, browser: Browser) -> None:
    page = visitor.open()
    expect_view(page, VIEWS["overview"])
    page.evaluate(
        "() => { setInterval(() => { document.title = document.querySelector('h1').textContent += '.' }, 20) }"
    )
    assert watched(browser, page, 1).paints_a_second > 20
    # So many steps take long on any machine.
    page.evaluate(
        "() => { setInterval(() => { const digits = []; for (let n = 0n; n < 10000000n; n++) digits[0] = n; }, 100) }"
    )
    assert max(watched(browser, page, 2).tasks_ms) > 50


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("view", ["#/changes?tables=busy", "#/tables/busy", "#/board", "#/"])
def test_memory_is_bounded(visitor: Visitor, site: Site, view: str) -> None:
    page = visitor.open(view)
    expect(page.locator("[data-link]")).to_have_attribute("data-link", "live")
    with changes(site):
        page.wait_for_timeout(20_000)
        before = memory(page)
        page.wait_for_timeout(_ROUNDS * 10_000)
        after = memory(page)
    # Elements exactly, and of the heap what garbage may come to.
    assert after["Nodes"] < before["Nodes"] * 1.2 + 1000
    assert after["JSEventListeners"] < before["JSEventListeners"] * 1.2 + 100
    assert after["JSHeapUsedSize"] < before["JSHeapUsedSize"] * 1.3 + 4_000_000


def memory(page: Page) -> dict[str, float]:
    """After a collection of garbage."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    devtools.send("Performance.enable")
    told = devtools.send("Performance.getMetrics")["metrics"]
    devtools.detach()
    return {each["name"]: each["value"] for each in told}
