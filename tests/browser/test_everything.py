"""After `make up`: what a person learns from the page alone, with the real pipeline on Spark behind it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lastword.kafka.client.connection import Connection
from support.command_line import CommandLine
from support.console_views import VIEWS, expect_view, time_text
from support.console_visitor import Tab, Visitor, cells, violations, visiting
from support.processes import started_with
from support.serve_instance import Instance
from support.topic_contents import records_of
from support.waiting import eventually

pytestmark = pytest.mark.quick
_LONG_S = 240


class Everything:
    """A home in which `lastword up` runs."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        done = line.run("up", "--detach", "--port", "0", "--http-port", "0", timeout_s=_LONG_S)
        assert done.returncode == 0, done.stderr
        self.port = int(self.part("serve")["address"].rsplit(":", 1)[1])
        self.asked = Instance(line, line.home, port=self.port)

    def part(self, name: str) -> dict[str, Any]:
        told = map(json.loads, self.line.run("status", "--json").stdout.splitlines())
        return next(row for row in told if row["part"] == name)

    def ask(self, path: str) -> Any:
        return self.asked.ask(path).json


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    line = CommandLine(home=tmp_path_factory.mktemp("everything"))
    try:
        yield Everything(line)
    finally:
        line.run("down")
        eventually(lambda: started_with(f"LASTWORD_HOME={line.home}") == [])


@pytest.fixture
def visitor(browser: Browser, everything: Everything, tab: Tab) -> Iterator[Visitor]:
    with visiting(browser, f"http://127.0.0.1:{everything.port}", tab) as made:
        yield made


def number(page: Page, figure: str) -> int:
    """The first number in a figure of the overview; -1 while there is none."""
    told = re.search(r"\d[\d,]*", page.locator(f"[data-figure={figure}]").inner_text())
    return -1 if told is None else int(told.group().replace(",", ""))


def test_the_overview_tells_that_all_runs_how_many_users_came_and_who_leads(
    visitor: Visitor, everything: Everything
) -> None:
    page = visitor.open()
    expect_view(page, VIEWS["overview"])
    for part, state in {"pipeline:teams": "running", "table:users": "ready", "table:team_stats": "ready"}.items():
        expect(page.locator(f"[data-part='{part}']")).to_have_attribute("data-state", state, timeout=240_000)
    for part in ("source:new_users", "topic:actions"):
        expect(page.locator(f"[data-part='{part}']")).to_be_visible()
    eventually(lambda: number(page, "users-processed") >= 5000, within_s=_LONG_S)
    before = number(page, "users-processed")
    assert before <= everything.ask("/tables/teams-status/rows/teams")["value"]["valid"]
    # They come at fifty a second, and the page follows by itself.
    eventually(lambda: number(page, "users-processed") > before, within_s=_LONG_S)
    leader = everything.ask("/board")["teams"][0]["team"]
    expect(page.locator("[data-figure=leader]")).to_contain_text(leader)
    expect(page.get_by_role("region", name="Problems")).to_be_hidden()
    assert violations(page) == []


def test_the_leaderboard_has_the_fifteen_teams_in_order_with_their_badges(
    visitor: Visitor, everything: Everything
) -> None:
    eventually(lambda: all(len(team["badges"]) == 4 for team in everything.ask("/board")["teams"]), within_s=_LONG_S)
    page = visitor.open("#/board")
    rows = page.locator("tr[data-team]")
    expect(rows).to_have_count(15)
    expect(rows.first.get_by_role("img")).to_have_count(5)  # four badges and the course of what it flagged
    # The page is up to a second behind.
    eventually(lambda: cells(rows, "data-team") == [team["team"] for team in everything.ask("/board")["teams"]])


def test_a_user_s_value_and_since_when(visitor: Visitor, everything: Everything) -> None:
    told = everything.ask("/tables/users/rows/user-3")
    page = visitor.open("#/tables/users/user-3")
    detail = page.get_by_role("region", name="Row user-3")
    expect(detail.locator("[data-value]")).to_contain_text("Charlie")
    expect(detail).to_contain_text(time_text(told["timestamp"]))


def test_how_much_of_the_profiles_is_obsolete(visitor: Visitor, everything: Everything) -> None:
    connection = Connection(bootstrap_servers=everything.part("broker")["address"])
    # 13, of which 3 were overwritten, unless Kafka has compacted them meanwhile.
    present = len(records_of(connection, "user-profiles"))
    page = visitor.open("#/topics/user-profiles")
    expect(page.locator("[data-census=records]")).to_contain_text(str(present), timeout=240_000)
    expect(page.locator("[data-census=live-keys]")).to_contain_text("10")
    expect(page.locator("[data-census=obsolete-share]")).to_contain_text(f"{(present - 10) / present:.1%}"[:-1])


def test_a_broker_that_is_killed_is_told_and_the_users_are_counted_on(visitor: Visitor, everything: Everything) -> None:
    page = visitor.open()
    expect_view(page, VIEWS["overview"])
    before = number(page, "users-processed")
    os.kill(everything.part("broker")["pid"], signal.SIGKILL)
    wrong = page.get_by_role("region", name="Problems").locator("[data-trouble=cluster]")
    expect(wrong).to_contain_text("Kafka")
    # It is started again by itself, and so is what the page shows.
    expect(wrong).to_have_count(0, timeout=240_000)
    eventually(lambda: number(page, "users-processed") > before, within_s=_LONG_S)
