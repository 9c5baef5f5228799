"""The store against the reference fold: any batching, keys in two partitions, values that can't be read."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from rocksdict import Options

from lastword.core.errors import ReplicaUnusable, StoreDamaged
from lastword.core.fold import fold
from lastword.core.record import Headers, Record
from lastword.replica.store.identity import Identity, OlderFormat
from lastword.replica.store.row_layout import FORMAT, PARTITION, ROW_HEAD, CommittedState, PartitionState, pack_row
from lastword.replica.store.store import Store
from support.generated_headers import headers

PARTITIONS = 3
BAD = b"\xff"

# (key, value, partition, timestamp, headers): few keys, which meet again; any partition, so that some live in two.
entries = st.tuples(
    st.sampled_from([b"", b"a", b"b", b"\x00\xff", b"user-1"]),
    st.none() | st.sampled_from([b"", b"1", b"2", BAD]),
    st.integers(0, PARTITIONS - 1),
    st.integers(0, 3),
    headers,
)
Entry = tuple[bytes, bytes | None, int, int] | tuple[bytes, bytes | None, int, int, Headers]


def readable(value: bytes) -> bool:
    return value != BAD


@contextmanager
def opened(folder: Path, most_last_good_bytes: int = 1000) -> Iterator[Store]:
    store = Store(folder, readable=readable, most_last_good_bytes=most_last_good_bytes)
    try:
        yield store
    finally:
        store.close()


def numbered(log: Sequence[Entry]) -> list[Record]:
    """The log with offsets: each partition counts its own."""
    next_offsets = dict.fromkeys(range(PARTITIONS), 0)
    records = []
    for key, value, partition, timestamp, *more in log:
        records.append(Record(key, value, partition, next_offsets[partition], timestamp, *more))
        next_offsets[partition] += 1
    return records


def places_after(records: list[Record]) -> dict[int, PartitionState]:
    return {record.partition: PartitionState(position=record.offset + 1) for record in records}


def disagreements(store: Store, records: list[Record]) -> list[str]:
    """Where the store is not the fold of the records: the oracle of this file."""
    expected = fold(records)
    live = {(r.partition, r.key): r for r in records if r.key is not None}
    live = {place: record for place, record in live.items() if record.value is not None}
    by_key = [key for _, key in live]
    found = []
    if list(store.scan()) != [expected[key] for key in sorted(expected)]:
        found.append("rows")
    if {key: store.get(key) for _, key in live} != expected:
        found.append("point reads")
    if len(store) != len(expected):
        found.append(f"count {len(store)}")
    if store.split_keys != sum(by_key.count(key) > 1 for key in set(by_key)):
        found.append(f"split keys {store.split_keys}")
    if store.poison_rows != sum(record.value == BAD for record in live.values()):
        found.append(f"poison rows {store.poison_rows}")
    keys_of = {partition: list(store.keys_of(partition)) for partition in range(PARTITIONS)}
    if keys_of != {partition: sorted(key for p, key in live if p == partition) for partition in keys_of}:
        found.append("keys of a partition")
    return found


@settings(max_examples=60)
@given(st.lists(st.lists(entries, max_size=6), max_size=6), st.booleans())
def test_the_rows_are_the_fold_in_any_batching(batches: list[list[Entry]], reopen: bool) -> None:
    records = numbered(list(itertools.chain(*batches)))
    with tempfile.TemporaryDirectory() as folder:
        done = 0
        with opened(Path(folder)) as store:
            for batch in batches:
                applied = records[done : done + len(batch)]
                done += len(batch)
                store.apply(applied, places_after(applied))
                # What came before is passed over: a batch may be applied twice.
                store.apply(records[:done], places_after(records[:done]))
                assert disagreements(store, records[:done]) == []
        if reopen:
            with opened(Path(folder)) as store:
                assert disagreements(store, records) == []


def test_the_oracle_objects_to_a_row_too_many_a_row_too_few_and_a_wrong_count(tmp_path: Path) -> None:
    records = numbered([(b"a", b"1", 0, 0), (b"b", b"2", 1, 0)])
    with opened(tmp_path) as store:
        store.apply(records, places_after(records))
        assert disagreements(store, records) == []
        assert "rows" in disagreements(store, records[:1])
        assert "rows" in disagreements(store, [*records, Record(b"a", None, 0, 1, 0)])
        assert "rows" in disagreements(store, [Record(b"a", b"1", 0, 0, 0, (("trace", b"x"),)), records[1]])
        store.committed_state = CommittedState({0: store.partitions[0]._replace(live_rows=2), 1: store.partitions[1]})
        assert len(store) == 3
        with pytest.raises(StoreDamaged, match="2 rows were found, and there should be 3"):
            disagreements(store, records)


def test_a_row_without_headers_has_a_place_and_its_value_and_nothing_more() -> None:
    record = Record(b"k", b"value", 1, 2, 3)
    assert pack_row(record, poison=False) == ROW_HEAD.pack(1, 2, 3, 0) + b"value"
    assert pack_row(record, poison=True) == ROW_HEAD.pack(1, 2, 3, 1) + b"value"


def test_a_value_that_can_not_be_read_keeps_its_headers_and_the_last_good_one_has_none(tmp_path: Path) -> None:
    good = Record(b"a", b"good", 0, 0, 0, (("schema", b"1"),))
    bad = Record(b"a", BAD, 0, 1, 0, (("schema", b"2"), ("schema", None)))
    with opened(tmp_path) as store:
        store.apply([good], {0: PartitionState(position=1)})
        store.apply([bad], {0: PartitionState(position=2)})
        assert (store.get(b"a"), store.last_good(b"a"), store.poison_rows) == (bad, b"good", 1)


@settings(max_examples=60)
@given(st.lists(st.lists(entries, max_size=6), max_size=6))
def test_changes_in_their_order_lead_to_what_the_table_shows(
    batches: list[list[Entry]],
) -> None:
    """A watcher that applies every change to a dict ends up with the table's rows."""
    records, done = numbered(list(itertools.chain(*batches))), 0
    watched: dict[bytes | None, Record] = {}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as store:
        for batch in batches:
            applied = store.apply(records[done : done + len(batch)], places_after(records[done : done + len(batch)]))
            done += len(batch)
            for _, shown in applied.changes():
                if shown.value is None:
                    watched.pop(shown.key, None)
                else:
                    watched[shown.key] = shown
            assert watched == fold(records[:done])


def test_sweeping_removes_only_the_rows_of_its_own_partition(tmp_path: Path) -> None:
    records = numbered([(b"a", b"1", 0, 0), (b"a", b"2", 1, 5), (b"b", b"3", 0, 0)])
    with opened(tmp_path) as store:
        store.apply(records, places_after(records))
        applied = store.sweep([b"a"], 1, store.partitions[1]._replace(caught_up_at=77))
        assert [shown.value for _, shown in applied.changes()] == [b"1"]
        assert disagreements(store, [records[0], records[2]]) == []
        assert store.partitions[1] == PartitionState(position=1, caught_up_at=77, swept_at=1)


def test_the_last_value_that_could_be_read_is_kept_beside_one_that_can_not(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.apply([Record(b"a", b"good", 0, 0, 0)], {0: PartitionState(position=1)})
        store.apply([Record(b"a", BAD, 0, 1, 0)], {0: PartitionState(position=2)})
        assert (store.get(b"a"), store.last_good(b"a")) == (Record(b"a", BAD, 0, 1, 0), b"good")
        store.apply([Record(b"a", b"better", 0, 2, 0), Record(b"a", BAD, 0, 3, 0)], {0: PartitionState(position=4)})
        assert store.last_good(b"a") == b"better"
        store.apply([Record(b"a", BAD, 0, 4, 0)], {0: PartitionState(position=5)})
        assert store.last_good(b"a") == b"better"
    with opened(tmp_path) as store:
        assert (store.poison_rows, store.committed_state.last_good_bytes) == (1, 6)
        store.apply([Record(b"a", None, 0, 5, 0)], {0: PartitionState(position=6)})
        assert (store.last_good(b"a"), store.poison_rows, store.committed_state.last_good_bytes) == (None, 0, 0)


def test_no_more_is_kept_beside_bad_values_than_the_setting_allows(tmp_path: Path) -> None:
    with opened(tmp_path, most_last_good_bytes=5) as store:
        store.apply([Record(b"a", b"12345", 0, 0, 0), Record(b"b", b"x", 0, 1, 0)], {0: PartitionState(position=2)})
        store.apply([Record(b"a", BAD, 0, 2, 0), Record(b"b", BAD, 0, 3, 0)], {0: PartitionState(position=4)})
        assert (store.last_good(b"a"), store.last_good(b"b")) == (b"12345", None)


def test_a_last_good_value_that_does_not_fit_leaves_none_rather_than_an_older_one(tmp_path: Path) -> None:
    with opened(tmp_path, most_last_good_bytes=5) as store:
        store.apply([Record(b"a", b"short", 0, 0, 0), Record(b"a", BAD, 0, 1, 0)], {0: PartitionState(position=2)})
        assert store.last_good(b"a") == b"short"
        store.apply([Record(b"a", b"too long", 0, 2, 0), Record(b"a", BAD, 0, 3, 0)], {0: PartitionState(position=4)})
        assert (store.last_good(b"a"), store.committed_state.last_good_bytes) == (None, 0)


IDENTITY = Identity(
    topic="t", topic_id="i", cluster_id="c", key_codec="string", value_codec="json", delete_retention_ms=1
)


@pytest.mark.parametrize(
    ("other", "refused", "why"),
    [
        (FORMAT - 1, OlderFormat, f"has the format {FORMAT - 1}, this lastword reads {FORMAT}"),
        (FORMAT + 1, ReplicaUnusable, f"has the format {FORMAT + 1}, .* delete the folder"),
    ],
)
@pytest.mark.parametrize("difference", ["a number", "another layout", "another family"])
def test_a_store_of_another_format_is_known_by_its_format_alone(
    tmp_path: Path, other: int, refused: type[ReplicaUnusable], why: str, difference: str
) -> None:
    with opened(tmp_path) as store:
        store.declare(replace(IDENTITY, format=other))
        if difference == "another layout":
            store.database.partition_states.put(PARTITION.pack(0), b"a place as another program packs it")
        elif difference == "another family":
            store.database.rocksdb.create_column_family("new", Options(raw_mode=True))
    with pytest.raises(refused, match=why), opened(tmp_path):
        pass


def test_a_store_says_which_table_it_is_of(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.declare(IDENTITY)
        assert store.identity == IDENTITY


@pytest.mark.parametrize("raw", [b"", b"[]", b"\xff", b"{"])
def test_a_store_whose_identity_is_damaged_is_a_damaged_store(tmp_path: Path, raw: bytes) -> None:
    with opened(tmp_path) as store:
        store.database.partition_states.put(b"table", raw)
    with pytest.raises(StoreDamaged, match="the entry that names the table is damaged"), opened(tmp_path):
        pass


@pytest.mark.parametrize("fields", [{"odd": 1}, {"topic": 7}])
def test_an_identity_with_another_shape_is_damage(tmp_path: Path, fields: dict[str, object]) -> None:
    with opened(tmp_path) as store:
        raw = json.dumps({**asdict(IDENTITY), **fields}).encode()
        store.database.partition_states.put(b"table", raw)
    with opened(tmp_path) as store, pytest.raises(StoreDamaged, match="the entry that names the table is damaged"):
        _ = store.identity


def test_an_identity_has_the_bytes_that_every_version_writes(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.declare(IDENTITY)
        assert store.database.partition_states.get(b"table") == (
            b'{"topic":"t","topic_id":"i","cluster_id":"c","key_codec":"string","value_codec":"json",'
            b'"delete_retention_ms":1,"format":%d}' % FORMAT
        )


def test_a_reader_of_the_count_never_sees_half_of_a_commit(tmp_path: Path) -> None:
    wrong: list[int] = []
    with opened(tmp_path) as store:
        store.apply([Record(b"k", b"1", 0, 0, 1)], {0: PartitionState(position=1), 1: PartitionState(position=0)})
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                count = len(store)
                if count != 1:
                    wrong.append(count)

        thread = threading.Thread(target=read)
        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        thread.start()
        for offset in range(0, 1000, 2):
            # The same key comes and goes in a second partition: it is one key all the time.
            store.apply([Record(b"k", b"1", 1, offset, 1)], {1: PartitionState(position=offset + 1)})
            store.apply([Record(b"k", None, 1, offset + 1, 1)], {1: PartitionState(position=offset + 2)})
        done.set()
        thread.join()
        sys.setswitchinterval(switch)
    assert wrong == []
