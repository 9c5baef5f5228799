"""The census over literal records: what is obsolete, and what may go already."""

from __future__ import annotations

import pytest

from lastword.core.record import Record
from lastword.kafka.compaction.census import Census, take_census
from lastword.kafka.compaction.nudge import RollRule
from lastword.kafka.compaction.why_not_smaller import duration


def log(*records: tuple[int, str | None, str | None, int]) -> list[Record]:
    """Records of partition 0 as (offset, key, value, timestamp)."""
    return [Record(_bytes(key), _bytes(value), 0, offset, timestamp) for offset, key, value, timestamp in records]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def test_a_record_is_obsolete_if_a_later_one_has_its_key() -> None:
    records = log((3, "a", "1", 10), (5, "b", "1", 20), (6, "a", "2", 30), (9, "b", None, 40))

    assert take_census([records]) == {
        0: Census(
            records=4,
            keys=2,
            tombstones=1,
            obsolete=2,
            newest_timestamp_ms=40,
            last_removable_offset=5,
            oldest_tombstone_ms=40,
            last_tombstone_offset=9,
        )
    }


def test_a_tombstone_that_a_value_follows_is_no_last_word() -> None:
    census = take_census([log((0, "a", None, 10), (1, "a", "", 20))])[0]
    assert (census.tombstones, census.obsolete, census.last_tombstone_offset) == (1, 1, None)


def test_nothing_after_a_young_record_may_go_yet() -> None:
    records = log((0, "a", "1", 10), (1, "a", "2", 20), (2, "b", "1", 99), (3, "b", "2", 30), (4, "a", "3", 40))
    census = take_census([records], ripe_until_ms=50)[0]
    assert census.obsolete == 3
    assert census.last_removable_offset == 0


def test_records_without_a_key_count_as_obsolete_because_the_cleaner_drops_them() -> None:
    census = take_census([log((0, None, "1", 10), (1, "a", "1", 20))])[0]
    assert (census.keys, census.obsolete, census.last_removable_offset) == (1, 1, 0)


UNBOUNDED = 2**63 - 1


def rule(*, after_max_ms: int = UNBOUNDED, before_max_ms: int = UNBOUNDED, broker_stamps: bool = False) -> RollRule:
    return RollRule(
        segment_ms=1_000,
        broker_stamps=broker_stamps,
        stamps_after_max_ms=after_max_ms,
        stamps_before_max_ms=before_max_ms,
    )


@pytest.mark.parametrize(
    ("newest_ms", "after_max_ms", "stamp_ms"),
    [
        pytest.param(5_000, UNBOUNDED, 100_000, id="old records: the present rolls"),
        pytest.param(99_990, UNBOUNDED, 100_991, id="fresh ones: just past segment.ms"),
        pytest.param(150_000, 60_000, 151_001, id="records from the future"),
        pytest.param(159_900, 60_000, 159_000, id="no later than the topic takes"),
    ],
)
def test_the_roll_is_stamped_past_segment_ms(newest_ms: int, after_max_ms: int, stamp_ms: int) -> None:
    assert rule(after_max_ms=after_max_ms).roll_ms(newest_ms, 100_000) == stamp_ms


@pytest.mark.parametrize(
    ("before_max_ms", "broker_stamps", "stamp_ms", "pause_ms"),
    [
        pytest.param(UNBOUNDED, False, 1, 0, id="never 0, which would mean now; the marker can follow at once"),
        pytest.param(80_000, False, 80_000, 0, id="no older than the topic takes"),
        pytest.param(60_500, False, 99_500, 601, id="so young that the marker has to wait: it may open a segment"),
        pytest.param(UNBOUNDED, True, 1, 1_101, id="stamped by the broker, with its clock"),
    ],
)
def test_the_witness_is_as_old_as_the_topic_takes(
    before_max_ms: int, broker_stamps: bool, stamp_ms: int, pause_ms: int
) -> None:
    chosen = rule(before_max_ms=before_max_ms, broker_stamps=broker_stamps)
    assert chosen.witness_ms(100_000) == stamp_ms
    assert chosen.pause_before_abort_ms(100_000) == pause_ms


@pytest.mark.parametrize(
    ("ms", "words"),
    [(100, "100 ms"), (1_000, "1 second"), (6_000, "6 seconds"), (3_599_000, "60 minutes"), (86_400_000, "1 day")],
)
def test_a_duration_is_said_as_a_person_would(ms: int, words: str) -> None:
    assert duration(ms) == words
