"""The reads of a replica's rows: what others see of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.core.errors import NotReady
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.replica.reads import FoundRow, RowListing, TableReads
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PartitionState
from lastword.replica.store.store import Store

IDENTITY = Identity(
    topic="t", topic_id="topic-1", cluster_id="c", key_codec="string", value_codec="json", delete_retention_ms=1000
)
PLAIN = Record(b"a", b'{"n":1}', 0, 4, 1700)
HEADED = Record(b"b", b"", 1, 7, 1800, (("who", b"me"), ("empty", None)))
POISON = Record(b"c", b"no json", 0, 5, 1900)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store", readable=lambda raw: raw != b"no json")
    store.declare(IDENTITY)
    store.apply([PLAIN, HEADED, POISON], {0: PartitionState(position=6), 1: PartitionState(position=8)})
    yield store
    store.close()


def test_a_stored_row_gives_each_part_of_its_record(store: Store) -> None:
    rows = list(TableReads(store).rows())
    assert [row.record() for row in rows] == [PLAIN, HEADED, POISON]
    for row, record in zip(rows, (PLAIN, HEADED, POISON), strict=True):
        assert (row.key, row.value, row.headers) == (record.key, record.value, record.headers)
        assert (row.partition, row.offset, row.timestamp) == (record.partition, record.offset, record.timestamp)
        assert row.is_poison == (record is POISON)


def test_a_point_read_says_which_topic_and_position_it_is_of(store: Store) -> None:
    found, position = TableReads(store).find(b"b"), Position({0: 6, 1: 8})
    assert (found.topic_id, found.position) == ("topic-1", position)
    assert found.row is not None
    assert found.row.record() == HEADED
    assert TableReads(store).find(b"nobody") == FoundRow("topic-1", position, None)


def test_rows_are_read_within_a_range_and_counted(store: Store) -> None:
    reads = TableReads(store)
    assert [row.key for row in reads.rows(b"b", b"c")] == [b"b"]
    assert (len(reads), reads.poison_rows, reads.applied_records) == (3, 1, 3)


def test_a_listing_knows_its_store_until_it_is_closed(store: Store, tmp_path: Path) -> None:
    listing = TableReads(store).listing()
    assert TableReads(store).is_store_of(listing)
    other = Store(tmp_path / "other", readable=lambda _: True)
    assert not TableReads(other).is_store_of(listing)
    other.close()
    listing.close()
    assert not TableReads(store).is_store_of(listing)
    with pytest.raises(NotReady, match="closed"):
        listing.next_slice(lambda row: row.key, most_rows=1, most_bytes=1)


def test_slices_of_a_listing_end_with_the_last_row(store: Store) -> None:
    listing, keys = RowListing(store), list[bytes]()
    while True:
        part = listing.next_slice(lambda row: row.key, most_rows=2, most_bytes=10**6)
        keys += part.rows
        if part.is_last:
            break
        listing.advance(part)
    assert keys == [b"a", b"b", b"c"]
    assert part.rows_so_far == 3
    listing.close()
