"""The broker dies: the page says what is wrong and what to do, shows nothing old as new, and recovers by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from lastword.demo.demo_topics import fill_profiles
from lastword.kafka.broker.local_cluster import LocalCluster
from support.command_line import CommandLine
from support.console_visitor import Visitor, violations, visiting
from support.killed_processes import kill_broker
from support.serve_instance import Instance


@pytest.fixture
def visitor(browser: Browser, fragile: LocalCluster, tmp_path: Path) -> Iterator[Visitor]:
    fill_profiles(fragile.connection)
    servers = {"LASTWORD_BOOTSTRAP_SERVERS": fragile.connection.bootstrap_servers}
    line = CommandLine(home=tmp_path / "home", environ=servers)
    with (
        Instance(line, tmp_path / "replica", "users=user-profiles") as instance,
        visiting(browser, instance.url) as made,
    ):
        yield made


def test_the_overview_says_that_the_broker_is_gone_and_then_that_it_is_back(
    visitor: Visitor, fragile: LocalCluster
) -> None:
    page = visitor.open()
    wrong = page.get_by_role("region", name="Problems").locator("[data-trouble=cluster]")
    expect(page.locator("[data-part='table:users']")).to_have_attribute("data-state", "ready")
    expect(wrong).to_have_count(0)

    kill_broker(fragile)

    expect(wrong).to_be_visible(timeout=40_000)
    expect(wrong).to_contain_text("Kafka")
    # What next.
    expect(wrong).to_contain_text("lastword")
    assert violations(page) == []
    # The rows are there all the same, and say how old they are.
    visitor.expects("status of 50")
    page.goto(f"{visitor.url}/#/tables/users/user-3")
    expect(page.locator("[data-value]")).to_contain_text("Charlie")
    expect(wrong).to_be_visible()
    page.goto(f"{visitor.url}/#/")

    fragile.start()

    expect(wrong).to_have_count(0, timeout=60_000)
    expect(page.locator("[data-part='table:users']")).to_have_attribute("data-state", "ready")
