"""What a broker's log says about a start after a crash, in Kafka 4.3's own lines."""

from __future__ import annotations

from lastword.kafka.broker.broker_log import cut_off

_LOADER = (
    "2026-11-18 01:00:54,388 WARN [LogLoader partition={partition}, dir=/home/of a user/node-1/data] {text} (LogLoader)"
)


def said(partition: str, text: str) -> str:
    return _LOADER.format(partition=partition, text=text)


def test_every_way_in_which_kafka_shortens_a_log_is_named_with_its_partition_and_offset() -> None:
    assert cut_off(
        [
            said("users-0", "Corruption found in segment 0, truncating to offset 493"),
            said(
                "users-1",
                "Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one with "
                "starting offset 7",
            ),
            said("users-1", "Corruption found in segment 7, truncating to offset 7"),
            said(
                "a.b-12",
                "Deleting all segments because logEndOffset (5) is smaller than logStartOffset 9. This could happen if "
                "segment files were deleted from the file system.",
            ),
        ]
    ) == ["users-0 from offset 493 on", "users-1 from offset 7 on", "a.b-12 from offset 5 on"]


def test_an_ordinary_recovery_cuts_off_nothing() -> None:
    assert (
        cut_off(
            [
                "2026-11-18 01:00:54,015 INFO Recovering 1 logs from /data since no clean shutdown file was found",
                said("users-0", "Recovering unflushed segment 0. 0 recovered for users-0."),
                said("users-0", "Producer state recovery took 13ms for snapshot load"),
            ]
        )
        == []
    )
