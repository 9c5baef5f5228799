"""The scenarios that must work, as a user plays them."""

from __future__ import annotations

import re

from support.command_line import CommandLine


def test_scenario_a_the_profile_store_plays_itself_and_leaves_nothing_running(alone: CommandLine) -> None:
    played = alone("demo", "profiles")
    counts = [int(count) for count in re.findall(r"^ +(\d+) records", played, re.MULTILINE)]
    assert counts == [5, 8, 13, 10, 9]
    assert "user-1 only v3, user-2 only v2, user-3 to user-10 v1" in played
    assert "user-1 is Alice Johnson" in played
    assert "11 live keys" in played
    assert "cluster stopped; nothing is left running" in played
    status = alone.run("status")
    assert status.returncode == 3
    assert "no local cluster is running: start one with  lastword broker start" in status.stderr


def test_scenario_a_the_demo_leaves_a_running_cluster_and_its_tables_alone(lastword: CommandLine) -> None:
    lastword("topic", "create", "user-profiles")
    lastword("put", "user-profiles", "mine", "1")
    played = lastword("demo", "profiles")
    assert "cluster stopped" not in played
    assert lastword("get", "user-profiles", "mine") == "1\n"
    lastword("topic", "delete", "user-profiles")
    lastword("topic", "delete", "demo-profiles")


def test_scenario_d1_every_compaction_setting_is_explained_with_default_range_and_recommendation(
    alone: CommandLine,
) -> None:
    explained = alone("topic", "explain")
    for setting in (
        "cleanup.policy",
        "min.cleanable.dirty.ratio",
        "segment.ms",
        "segment.bytes",
        "delete.retention.ms",
        "min.compaction.lag.ms",
        "max.compaction.lag.ms",
        "log.cleaner.threads",
    ):
        section = explained.partition(f"{setting}\n")[2].partition("\n\n")[0]
        for part in ("default", "range", "recommended"):
            assert part in section, f"{setting} has no {part}: {section}"


def test_a_mistyped_setting_is_refused_with_the_nearest_name_before_the_broker_sees_it(lastword: CommandLine) -> None:
    done = lastword.run("topic", "create", "mistyped", "--set", "segment.mss=10s")
    assert done.returncode == 2
    assert "segment.ms" in done.stderr
    assert lastword.run("topic", "describe", "mistyped").returncode == 1


def test_more_partitions_on_a_compacted_topic_need_consent(lastword: CommandLine) -> None:
    lastword("topic", "create", "grows", "--partitions", "1")
    refused = lastword.run("topic", "alter", "grows", "--partitions", "2")
    assert refused.returncode == 2
    assert "--yes-move-keys" in refused.stderr
    assert "2 partitions" in lastword("topic", "alter", "grows", "--partitions", "2", "--yes-move-keys")
    lastword("topic", "delete", "grows")
