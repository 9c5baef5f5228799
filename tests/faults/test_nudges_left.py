"""After a compaction on demand a reader of uncommitted data sees what a reader of committed data sees.

Where a record of ours has to stay, the result says where and until when, and a later compaction removes it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lastword.core.clock import now_ms
from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.record import NUDGE_KEY
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import alter_settings, settings_now, topic_identity
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.compaction.journal import JournalEntry, SettingChange, claimed, put_back, restore_left_behind
from lastword.kafka.compaction.nudge import nudge, nudger, roll_rule
from lastword.kafka.compaction.on_demand import Compaction, compact_topic
from support.command_line import CommandLine
from support.compacted_logs import THIRTEEN_PROFILES, aborted_transaction, committed, make_topic, uncommitted, write

HOUR_MS = 3_600_000


def compacted(connection: Connection, topic: str, home: Path, timeout_s: float = 60) -> Compaction:
    return compact_topic(connection, topic, home=home, timeout_s=timeout_s)


def write_stamped(connection: Connection, topic: str, records: Sequence[tuple[str, str, int]]) -> None:
    """Records as (key, value, timestamp), one after the other."""
    producer = connection.producer(linger_ms=0)
    for key, value, stamp_ms in records:
        producer.produce(topic, key=key, value=value, timestamp=stamp_ms)
        assert producer.flush(30) == 0


def ours(connection: Connection, topic: str) -> int:
    return [key for key, _ in uncommitted(connection, topic)].count(NUDGE_KEY)


def assert_nothing_of_ours_is_left(connection: Connection, topic: str, compaction: Compaction) -> None:
    kept = sorted((record.key, record.value) for record in committed(connection, topic))
    assert sorted(uncommitted(connection, topic)) == kept
    assert [p.nudge_left_until_ms for p in compaction.partitions] == [None] * len(compaction.partitions)
    assert compaction.notes == ()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"message_timestamp_type": "LogAppendTime"}, id="the broker stamps"),
        pytest.param({"segment_jitter_ms": HOUR_MS}, id="segments that roll an hour early"),
        pytest.param({"segment_ms": 100}, id="segments that roll by themselves"),
        pytest.param({"cleanup_policy": "compact,delete"}, id="records that also expire"),
    ],
)
def test_nothing_of_ours_is_left_whatever_the_settings_of_the_topic(
    connection: Connection, topic_name: str, tmp_path: Path, settings: dict[str, Any]
) -> None:
    make_topic(connection, topic_name, partitions=3, **settings)
    # Two partitions at most have something to remove.
    write(connection, topic_name, [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"), ("c", "2"), ("d", "1")])

    compaction = compacted(connection, topic_name, tmp_path)

    assert sum(p.after.records for p in compaction.partitions) == 4
    assert_nothing_of_ours_is_left(connection, topic_name, compaction)


def test_nothing_of_ours_is_left_beside_records_of_1970(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write_stamped(connection, topic_name, [("a", "1", 5), ("a", "2", 6)])

    assert_nothing_of_ours_is_left(connection, topic_name, compacted(connection, topic_name, tmp_path))


def test_nothing_of_ours_is_left_after_the_second_cleaning_that_takes_tombstones(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, delete_retention_ms=100)
    write(connection, topic_name, [("a", "1"), ("b", "1"), ("a", None)])

    compaction = compacted(connection, topic_name, tmp_path)

    assert [record.key for record in committed(connection, topic_name)] == [b"b"]
    assert_nothing_of_ours_is_left(connection, topic_name, compaction)


def test_a_segment_that_begins_in_the_future_keeps_one_record_of_ours_and_the_result_says_until_when(
    connection: Connection, lastword: CommandLine, topic_name: str
) -> None:
    make_topic(connection, topic_name, partitions=1)
    ahead_ms = now_ms() + HOUR_MS // 2
    write_stamped(connection, topic_name, [("a", "1", ahead_ms), ("a", "2", ahead_ms)])

    done = lastword.run("topic", "compact", topic_name, "--json")

    compaction = json.loads(done.stdout)
    assert compaction["partitions"][0]["after"]["records"] == 1
    assert ours(connection, topic_name) == 1
    until_ms = compaction["partitions"][0]["nudge_left_until_ms"]
    # The record of ours is stamped segment.ms after the newest one, and a marker rolls segment.ms after that. A slow
    # cleaner gets another nudge, which puts such a record in the place of the one before.
    assert until_ms >= ahead_ms + 2 * 1_001
    (note,) = compaction["notes"]
    assert note.startswith(
        f"{topic_name} partition 0: readers of uncommitted data see records under __lastword_nudge (null) until the "
        "topic is compacted after 20"
    )
    assert note.endswith(" UTC, because it has records stamped in the future")
    # Asked again before that time, it changes nothing, and says the same.
    again = lastword.run("topic", "compact", topic_name)
    assert f"lastword: {note}\n" in again.stderr
    assert ours(connection, topic_name) == 1


def test_records_stamped_in_the_future_leave_nothing_of_ours_where_the_segment_began_before_them(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    at_ms = now_ms()
    write_stamped(connection, topic_name, [("a", "1", at_ms), ("a", "2", at_ms + HOUR_MS // 2)])

    compaction = compacted(connection, topic_name, tmp_path)

    assert compaction.partitions[0].after.records == 1
    assert_nothing_of_ours_is_left(connection, topic_name, compaction)


def test_nothing_of_ours_is_left_where_no_record_may_be_stamped_in_the_past(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    # The broker stamps the markers of many partitions one after the other and appends them afterwards: were it bound to
    # take nothing older than now, it would refuse some, and never end the transaction.
    make_topic(connection, topic_name, partitions=50)
    producer = connection.producer()
    for partition in range(50):
        for value in ("1", "2"):
            producer.produce(topic_name, key="a", value=value, partition=partition)
    assert producer.flush(30) == 0
    admin = connection.admin()
    bound = "message.timestamp.before.max.ms"
    # Afterwards: on a slow machine the records themselves would come too late.
    alter_settings(admin, topic_name, {bound: "0"})
    bounds: dict[str, str] = {}

    compaction = compact_topic(
        connection,
        topic_name,
        home=tmp_path,
        at_step=lambda step: bounds.update({step: settings_now(admin, topic_name)[bound].value}),
    )

    assert (bounds["alter"], bounds["abort"], bounds["recount"]) == ("0", "600000", "0")
    assert [p.after.records for p in compaction.partitions] == [1] * 50
    assert_nothing_of_ours_is_left(connection, topic_name, compaction)


def test_no_nudge_is_written_where_the_topic_might_refuse_its_marker(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])
    admin = connection.admin()
    bound = "message.timestamp.before.max.ms"
    ends = log_bounds(connection, topic_name)

    def lower_the_bound(step: str) -> None:
        if step == "nudge":
            alter_settings(admin, topic_name, {bound: "5"})

    with pytest.raises(LastwordError, match=f"someone lowered {bound} meanwhile: compact it again"):
        compact_topic(connection, topic_name, home=tmp_path, at_step=lower_the_bound)

    assert log_bounds(connection, topic_name) == ends
    # The bound is someone else's; the settings that the compaction changed are put back.
    now = settings_now(admin, topic_name)
    assert (now[bound].on_topic, now["segment.ms"].on_topic) == ("5", None)


@pytest.mark.long
def test_the_bound_stays_raised_until_it_is_known_that_no_marker_is_on_its_way(
    fragile: LocalCluster, topic_name: str, tmp_path: Path
) -> None:
    connection = fragile.connection
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])
    admin = connection.admin()
    bound = "message.timestamp.before.max.ms"
    alter_settings(admin, topic_name, {bound: "0"})

    def stop_the_broker(step: str) -> None:
        if step == "restore":
            fragile.stop()

    with pytest.raises(ClusterUnreachable, match=f"until the next lastword command .* keeps .*{bound}=600000"):
        compact_topic(connection, topic_name, home=tmp_path, at_step=stop_the_broker)

    fragile.start()
    reports: list[str] = []
    assert [entry.topic for entry in restore_left_behind(connection, tmp_path, reports.append)] == [topic_name]
    assert f"{topic_name}: {bound} put back from 600000 to 0" in reports
    assert settings_now(connection.admin(), topic_name)[bound].value == "0"


def test_a_setting_that_this_kafka_does_not_have_is_not_put_back(connection: Connection, topic_name: str) -> None:
    make_topic(connection, topic_name)
    admin = connection.admin()
    entry = JournalEntry(
        cluster_id="c",
        topic=topic_name,
        topic_id=topic_identity(admin, topic_name),
        changes={"message.timestamp.difference.max.ms": SettingChange(before="0", during="600000")},
    )
    assert put_back(admin, entry).left_alone == (
        f"{topic_name}: this Kafka has no setting message.timestamp.difference.max.ms: nothing to put back",
    )


@pytest.mark.long
def test_a_machine_that_stands_still_during_a_nudge_is_not_taken_for_another_machine(
    connection: Connection, topic_name: str
) -> None:
    make_topic(connection, topic_name)
    rule = roll_rule(settings_now(connection.admin(), topic_name), segment_ms=HOUR_MS)

    nudged = nudge(
        nudger(connection, topic_name),
        topic_name,
        partitions=[0],
        rolls_ms={},
        rule=rule,
        # The broker looks every 10 s for transactions that are open for too long.
        before_abort=lambda: time.sleep(21),
    )

    assert nudged.witnesses == {0: 0}


def test_what_is_left_when_the_time_is_up_is_told_and_the_next_compaction_removes_it(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, partitions=1)
    write(connection, topic_name, THIRTEEN_PROFILES)

    with aborted_transaction(connection, topic_name, records=1):
        held = compacted(connection, topic_name, tmp_path, timeout_s=6)
        assert ours(connection, topic_name) > 0
        assert held.partitions[0].nudge_left_until_ms is not None
        (note,) = held.notes
        assert note == (
            f"{topic_name} partition 0: readers of uncommitted data see records under __lastword_nudge (null) until "
            "the topic is compacted again"
        )

    assert_nothing_of_ours_is_left(connection, topic_name, compacted(connection, topic_name, tmp_path))


def test_a_topic_with_nothing_else_to_remove_is_compacted_for_what_an_earlier_compaction_left(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    # So that the broker does not clean it by itself meanwhile.
    make_topic(connection, topic_name, partitions=2, min_cleanable_dirty_ratio=1, min_compaction_lag_ms=0)
    write(connection, topic_name, [("a", "1")])
    admin = connection.admin()
    producer = nudger(connection, topic_name)
    rule = roll_rule(settings_now(admin, topic_name), segment_ms=HOUR_MS)
    nudge(producer, topic_name, partitions=[1], rolls_ms={}, rule=rule, before_abort=lambda: None)
    assert ours(connection, topic_name) == 1
    with claimed(tmp_path, str(connection.reach(admin).cluster_id), topic_name) as claim:
        claim.write_left(topic_identity(admin, topic_name), [1])

    assert_nothing_of_ours_is_left(connection, topic_name, compacted(connection, topic_name, tmp_path))

    steps: list[str] = []
    compact_topic(connection, topic_name, home=tmp_path, at_step=steps.append)
    assert steps == ["look", "count", "recount"]
