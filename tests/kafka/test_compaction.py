"""Compaction on demand, on a real broker with its real cleaner."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lastword.core.errors import AlterRefused, BadInput, LastwordError, NotFound
from lastword.core.fold import fold
from lastword.core.record import NUDGE_KEY
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import alter_settings
from lastword.kafka.compaction.on_demand import Compaction, compact_topic
from support.compacted_logs import (
    THIRTEEN_PROFILES,
    aborted_transaction,
    committed,
    has_open_transaction,
    make_topic,
    set_on_topic,
    write,
)
from support.waiting import eventually

TEN_PROFILES = {f"user-{n}": "v1" for n in range(3, 11)} | {"user-1": "v3", "user-2": "v2"}


def compacted(connection: Connection, topic: str, home: Path, timeout_s: float = 60) -> Compaction:
    return compact_topic(connection, topic, home=home, timeout_s=timeout_s)


def whys(compaction: Compaction) -> list[str | None]:
    return [partition.why for partition in compaction.partitions]


def test_the_textbook_log_keeps_exactly_the_last_record_of_each_key_at_its_offset(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    with aborted_transaction(connection, topic_name, records=12):
        pass
    write(connection, topic_name, [("K1", "V5")])
    with aborted_transaction(connection, topic_name, records=3):
        write(connection, topic_name, [("K5", "V2")])
    write(connection, topic_name, [("K2", "V7"), ("K7", "V1"), ("K8", "V4"), ("K4", "V6"), ("K1", "V1"), ("K1", "V2")])
    write(connection, topic_name, [("K1", "V9"), ("K9", "V6"), ("K8", "V22"), ("K2", "V25")])
    offsets = [record.offset for record in committed(connection, topic_name)]
    assert offsets == [13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]

    compaction = compacted(connection, topic_name, tmp_path)

    assert [(record.offset, record.key, record.value) for record in committed(connection, topic_name)] == [
        (17, b"K5", b"V2"),
        (20, b"K7", b"V1"),
        (22, b"K4", b"V6"),
        (25, b"K1", b"V9"),
        (26, b"K9", b"V6"),
        (27, b"K8", b"V22"),
        (28, b"K2", b"V25"),
    ]
    assert whys(compaction) == [None]


def test_thirteen_profiles_of_ten_users_become_ten_and_the_settings_are_as_before(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, partitions=3, min_cleanable_dirty_ratio=0.01, segment_ms=10_000)
    write(connection, topic_name, THIRTEEN_PROFILES)
    settings = set_on_topic(connection, topic_name)

    compaction = compacted(connection, topic_name, tmp_path)

    rows = [(record.key, record.value) for record in committed(connection, topic_name)]
    assert sorted(rows) == sorted((key.encode(), value.encode()) for key, value in TEN_PROFILES.items())
    assert sum(partition.before.records for partition in compaction.partitions) == 13
    assert sum(partition.before.obsolete for partition in compaction.partitions) == 3
    assert sum(partition.after.records for partition in compaction.partitions) == 10
    assert set_on_topic(connection, topic_name) == settings
    assert settings == {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "10000"}


def test_settings_that_were_not_set_on_the_topic_are_not_set_afterwards(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    assert compacted(connection, topic_name, tmp_path).partitions[0].after.records == 1

    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact"}


def test_a_tombstone_is_gone_after_its_retention_and_another_cleaning(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, delete_retention_ms=100)
    write(connection, topic_name, [("user-4", "v1"), ("user-5", "v1"), ("user-5", None), ("user-6", "")])

    compacted(connection, topic_name, tmp_path)

    # Both cleanings fit into one call; the empty string is a value and stays.
    rows = [(record.key, record.value) for record in committed(connection, topic_name)]
    assert rows == [(b"user-4", b"v1"), (b"user-6", b"")]


def test_a_tombstone_stays_through_the_cleanings_before_its_retention_is_over_and_goes_in_the_next(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, delete_retention_ms=10_000)
    write(connection, topic_name, [("user-5", "v1"), ("user-5", None)])

    first = compacted(connection, topic_name, tmp_path, timeout_s=9)
    met_at = time.monotonic()
    assert [record.offset for record in committed(connection, topic_name)] == [1]
    assert first.partitions[0].after.tombstones == 1

    again = compacted(connection, topic_name, tmp_path, timeout_s=0.5)
    assert again.partitions[0].after.records == 1
    assert "delete.retention.ms (10 seconds)" in str(again.partitions[0].why)

    eventually(lambda: time.monotonic() > met_at + 10)
    # Nothing is obsolete now: the tombstone alone is reason enough.
    last = compacted(connection, topic_name, tmp_path)
    assert last.partitions[0].before.obsolete == 0
    assert committed(connection, topic_name) == []


def test_a_clean_topic_is_left_alone_and_says_so(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    make_topic(connection, topic_name, partitions=2)
    producer = connection.producer()
    producer.produce(topic_name, key="a", value="1", partition=0)
    assert producer.flush(30) == 0
    steps: list[str] = []

    compaction = compact_topic(connection, topic_name, home=tmp_path, at_step=steps.append)

    assert steps == ["look", "count", "recount"]
    assert whys(compaction) == [
        "nothing is obsolete: it already has one record for each key",
        "nothing to compact: it has no records",
    ]


def test_readers_of_committed_data_never_see_the_nudge(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2"), ("b", None)])
    before = fold(committed(connection, topic_name))

    compacted(connection, topic_name, tmp_path)

    assert NUDGE_KEY not in {record.key for record in committed(connection, topic_name)}
    assert fold(committed(connection, topic_name)) == before
    assert not has_open_transaction(connection, topic_name)


@pytest.mark.parametrize("ahead_ms", [0, 1_800_000])
def test_records_stamped_in_the_future_do_not_keep_the_segment_open(
    connection: Connection, topic_name: str, tmp_path: Path, ahead_ms: int
) -> None:
    make_topic(connection, topic_name)
    producer = connection.producer()
    for value in ("1", "2"):
        producer.produce(topic_name, key="a", value=value, timestamp=time.time_ns() // 1_000_000 + ahead_ms)
    assert producer.flush(30) == 0

    assert compacted(connection, topic_name, tmp_path, timeout_s=20).partitions[0].after.records == 1
    write(connection, topic_name, [("a", "3")])
    assert compacted(connection, topic_name, tmp_path, timeout_s=20).partitions[0].after.records == 1


def test_a_topic_stamped_by_the_broker_is_compacted_too(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, message_timestamp_type="LogAppendTime")
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    assert compacted(connection, topic_name, tmp_path).partitions[0].after.records == 1


def test_an_open_transaction_is_named_as_what_holds_the_cleaner_back(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    with aborted_transaction(connection, topic_name, records=1):
        held = compacted(connection, topic_name, tmp_path, timeout_s=3)
        assert held.partitions[0].after.records == 2
        assert "a transaction open since offset 2 holds the cleaner back" in str(held.partitions[0].why)
        assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact"}

    assert compacted(connection, topic_name, tmp_path).partitions[0].after.records == 1


def test_records_younger_than_the_compaction_lag_stay_and_the_answer_says_for_how_long(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, min_compaction_lag_ms=3_600_000)
    write(connection, topic_name, [("a", "1"), ("a", "2")])
    steps: list[str] = []

    compaction = compact_topic(connection, topic_name, home=tmp_path, at_step=steps.append)

    assert compaction.partitions[0].after.obsolete == 1
    assert "younger than min.compaction.lag.ms (1 hour)" in str(compaction.partitions[0].why)
    assert "compact again in 60 minutes" in str(compaction.partitions[0].why)
    assert "alter" not in steps
    assert set_on_topic(connection, topic_name)["min.compaction.lag.ms"] == "3600000"


def test_a_compaction_lag_that_ends_within_the_timeout_is_waited_for(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, min_compaction_lag_ms=3_000)
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    assert compacted(connection, topic_name, tmp_path).partitions[0].after.records == 1


def test_a_topic_that_is_not_compacted_is_refused_with_the_way_out(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name, cleanup_policy="delete")

    with pytest.raises(BadInput, match=r"cleanup.policy=delete.*lastword topic alter"):
        compacted(connection, topic_name, tmp_path)


def test_a_topic_that_is_not_there_is_not_found(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        compacted(connection, topic_name, tmp_path)


def test_a_second_compaction_of_the_same_topic_is_refused_while_the_first_runs(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])
    refusals: list[str] = []

    def second(step: str) -> None:
        if step == "wait":
            with pytest.raises(LastwordError, match=r"is being compacted by process \d+: wait for it") as refusal:
                compacted(connection, topic_name, tmp_path)
            refusals.append(str(refusal.value))

    first = compact_topic(connection, topic_name, home=tmp_path, at_step=second)

    assert len(refusals) >= 1
    assert first.partitions[0].after.records == 1
    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact"}


def test_a_setting_that_someone_changes_meanwhile_is_left_to_them_and_noted(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    def someone_else(step: str) -> None:
        if step == "restore":
            alter_settings(connection.admin(), topic_name, {"segment.ms": "77000"})

    compaction = compact_topic(connection, topic_name, home=tmp_path, at_step=someone_else)

    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact", "segment.ms": "77000"}
    assert compaction.notes == (f"{topic_name}: someone else changed segment.ms to 77000: that value stays",)


@pytest.mark.parametrize("interrupted_at", ["alter", "nudge", "abort", "wait"])
def test_ctrl_c_puts_the_settings_back_and_leaves_no_transaction_open(
    connection: Connection, topic_name: str, tmp_path: Path, interrupted_at: str
) -> None:
    make_topic(connection, topic_name)
    write(connection, topic_name, [("a", "1"), ("a", "2")])

    def ctrl_c(step: str) -> None:
        if step == interrupted_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact_topic(connection, topic_name, home=tmp_path, at_step=ctrl_c)

    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact"}
    assert list((tmp_path / "journal").glob("*.json")) == []
    eventually(lambda: not has_open_transaction(connection, topic_name))


def test_a_change_that_the_cluster_refuses_changes_nothing_and_is_told_from_one_of_unknown_outcome(
    connection: Connection, topic_name: str
) -> None:
    make_topic(connection, topic_name)

    with pytest.raises(AlterRefused, match=r"can't set segment.ms=1000, set min.cleanable.dirty.ratio=7"):
        alter_settings(connection.admin(), topic_name, {"segment.ms": "1000", "min.cleanable.dirty.ratio": "7"})

    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact"}
