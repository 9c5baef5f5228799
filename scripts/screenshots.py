"""Draws every view of the console, light and dark, into docs/screenshots/, with all of `lastword up` behind it.

    PYTHONPATH=tests python scripts/screenshots.py

It takes about three minutes, so that the charts over time have something to show.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import get_args

from playwright.sync_api import Browser, Page

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from support.boards import act, stats, write
from support.chromium import chromium_of, ensure_fonts, find_chromium
from support.command_line import CommandLine
from support.console_views import VIEWS, expect_view
from support.console_visitor import NARROW, WIDE, Scheme, Visitor, visiting

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
DRAWN = [name for name in VIEWS if name != "found"]
_UP_S = 300
_COURSE_S = 90
_MOST_BYTES = 200_000


def main() -> int:
    path = find_chromium()
    ensure_fonts()
    with tempfile.TemporaryDirectory() as folder:
        line = CommandLine(home=Path(folder) / "home")
        try:
            done = line.run("up", "--detach", "--port", "0", "--http-port", "0", timeout_s=_UP_S)
            if done.returncode != 0:
                print(done.stderr, file=sys.stderr)
                return 1
            parts = {row["part"]: row for row in map(json.loads, line.run("status", "--json").stdout.splitlines())}
            connection = Connection(bootstrap_servers=parts["broker"]["address"])
            with chromium_of(path, Path(folder)) as browser:
                drawn = drawn_with(browser, parts["serve"]["address"], connection)
        finally:
            line.run("down")
    large = {name: size for name, size in drawn.items() if size > _MOST_BYTES}
    print(f"{len(drawn)} views in {FOLDER}, {sum(drawn.values()):,} bytes")
    if large:
        print(f"too large: {large}", file=sys.stderr)
    return 1 if large else 0


def drawn_with(browser: Browser, url: str, connection: Connection) -> dict[str, int]:
    """The files and their sizes."""
    FOLDER.mkdir(exist_ok=True)
    sizes = {}
    with visiting(browser, url) as visitor:
        pages = opened(visitor)
        play(connection, pages["overview"])
        for name, page in pages.items():
            expect_view(page, VIEWS[name.removesuffix("-phone")])
            fit(page)
            for scheme in get_args(Scheme):
                page.emulate_media(color_scheme=scheme)
                file = FOLDER / f"{name}-{scheme}.png"
                page.screenshot(path=file, animations="disabled")
                sizes[file.name] = file.stat().st_size
    return sizes


def opened(visitor: Visitor) -> dict[str, Page]:
    """The pages, which stay open while the scenario plays: a page shows the changes that arrived while it was open."""
    wide = {name: visitor.open(VIEWS[name].link, fresh=True) for name in DRAWN}
    return {**wide, **{f"{name}-phone": visitor.open(VIEWS[name].link, size=NARROW) for name in ("overview", "board")}}


def fit(page: Page) -> None:
    """Makes the window as high as its content, between two limits."""
    width = page.viewport_size["width"] if page.viewport_size else WIDE[0]
    content = page.evaluate("Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + scrollY)")
    page.set_viewport_size({"width": width, "height": min(max(content, 440), 960)})


def play(connection: Connection, page: Page) -> None:
    """Writes something for each view: outside teams, refused records, and users that change and are deleted."""
    act(connection, *["team-16"] * 120, *["team-17"] * 9)
    write(connection, "team_stats", ("team-16", stats("team-16", 400, 120)), ("team-16", stats("team-16", 90, 12)))
    write(connection, "team_stats", ("team-17", stats("team-18", 4, 1)), ("team-17", stats("team-17", 3, 9)))
    write(connection, "actions", (None, b"BAN_CUSTOMER john@example.com"))
    cities = ("Oslo", "Lima", "Kyoto", "Accra")
    with Table(connection, "user-profiles") as users:
        for second in range(_COURSE_S):
            name = f"user-{(1, 2, 4, 6, 7, 8, 9, 10)[second * 5 % 8]}"
            home = {"city": cities[second % 4], "since": 2000 + second}
            users.put(name, {"userId": name, "version": second, "address": home, "premium": second % 2 == 0})
            if second % 20 == 19:
                users.delete("user-5")
            page.wait_for_timeout(1000)


if __name__ == "__main__":
    sys.exit(main())
