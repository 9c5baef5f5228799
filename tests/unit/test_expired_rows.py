"""Rows leave with their records: the store against the fold of what the log still holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.core.fold import fold
from lastword.core.record import Record
from lastword.replica.expired_rows import ExpiredRows
from lastword.replica.store.apply_batch import Applied
from lastword.replica.store.row_layout import PartitionState
from lastword.replica.store.store import Store

PARTITIONS = 3
BAD = b"\xff"
Entry = tuple[bytes, bytes | None, int, int]

# (key, value, partition, timestamp): few keys, so that they meet again; any partition, so that some live in two.
entries = st.tuples(
    st.sampled_from([b"", b"a", b"b", b"c", b"user-1"]),
    st.none() | st.sampled_from([b"", b"1", b"2", BAD]),
    st.integers(0, PARTITIONS - 1),
    st.integers(0, 3),
)
# What happens to a table: records come, a log loses its start, a slice of removal runs, or the process is killed.
events = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(entries, min_size=1, max_size=6)),
        st.tuples(st.just("leave"), st.tuples(st.integers(0, PARTITIONS - 1), st.integers(1, 6))),
        st.tuples(st.just("slice"), st.none()),
        st.tuples(st.just("kill"), st.none()),
    ),
    max_size=25,
)


class Log:
    """A topic that loses records at its start, the store that follows it, and a watcher that applies every change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.records: list[Record] = []
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.starts = dict.fromkeys(range(PARTITIONS), 0)
        self.watched: dict[bytes | None, Record] = {}
        self._open()
        self.store.apply([], {partition: PartitionState(position=0) for partition in self.ends})

    def _open(self) -> None:
        self.store = Store(self._folder, readable=lambda value: value != BAD)
        # A row at a time, and never a rest: so that anything may happen between two rows.
        self.leaving = ExpiredRows(self.store, rows_at_once=1, slice_s=0, pause_factor=0)

    def write(self, batch: list[Entry]) -> None:
        fresh, places = [], {}
        for key, value, partition, timestamp in batch:
            fresh.append(Record(key, value, partition, self.ends[partition], timestamp))
            self.ends[partition] += 1
            places[partition] = self.store.partitions[partition]._replace(position=self.ends[partition])
        self.records += fresh
        self.watch(self.store.apply(fresh, places))

    def leave(self, where: tuple[int, int]) -> None:
        partition, records = where
        self.starts[partition] = min(self.ends[partition], self.starts[partition] + records)
        self.leaving.note(self.starts)

    def slice(self, _: None = None) -> None:
        applied = self.leaving.step()
        if applied is not None:
            self.watch(applied)

    def kill(self, _: None) -> None:
        """What was committed is there at the next start, and nothing else."""
        self.store.close()
        self._open()

    def settle(self) -> None:
        """As the first look after a start, then slices until nothing is left to do."""
        self.leaving.note(self.starts)
        while self.store.log_start != self.starts:
            self.slice()

    def watch(self, applied: Applied) -> None:
        for _, shown in applied.changes():
            if shown.value is None:
                self.watched.pop(shown.key, None)
            else:
                self.watched[shown.key] = shown

    def held(self) -> list[Record]:
        return [record for record in self.records if record.offset >= self.starts[record.partition]]


@contextmanager
def new_log() -> Iterator[Log]:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder))
        try:
            yield log
        finally:
            log.store.close()


def disagreements(log: Log) -> list[str]:
    """Where the table is not the fold of what the log holds: the oracle of this file."""
    store, held = log.store, log.held()
    expected = fold(held)
    newest = {(r.partition, r.key): r for r in held}
    live = {place: record for place, record in newest.items() if record.value is not None}
    keys = [key for _, key in live]
    found = []
    if list(store.scan()) != [expected[key] for key in sorted(expected)]:
        found.append("rows")
    if log.watched != expected:
        found.append("watched rows")
    if len(store) != len(expected):
        found.append(f"count {len(store)}")
    if store.split_keys != sum(keys.count(key) > 1 for key in set(keys)):
        found.append(f"split keys {store.split_keys}")
    if store.poison_rows != sum(record.value == BAD for record in live.values()):
        found.append(f"poison rows {store.poison_rows}")
    if {(p, key) for key, rows in store.live_rows() for p, _ in rows} != live.keys():
        found.append("live rows by partition")
    bad = {record.key for record in expected.values() if record.value == BAD}
    if not {key for key, _ in store.database.last_good_values.items()} <= bad:
        found.append("values kept beside rows that are gone")
    return found


@settings(max_examples=60)
@given(events)
def test_the_rows_are_the_fold_of_what_the_log_holds(happenings: list[tuple[str, object]]) -> None:
    with new_log() as log:
        for name, what in happenings:
            act: Callable[[object], None] = getattr(log, name)
            act(what)
        log.settle()
        assert disagreements(log) == []
        assert all(place.topic_log_start == place.log_start for place in log.store.partitions.values())


def test_the_oracle_objects_to_a_row_that_stayed_and_to_one_that_left_too_early() -> None:
    with new_log() as log:
        log.write([(b"a", b"1", 0, 0), (b"b", b"2", 0, 0), (b"c", b"3", 1, 0)])
        assert disagreements(log) == []
        log.starts[0] = 1
        assert disagreements(log) == ["rows", "watched rows", "count 3", "live rows by partition"]
        log.settle()
        assert disagreements(log) == []
        log.watch(log.store.remove_expired([(1, b"c")], {}))
        assert "rows" in disagreements(log)


def test_a_watcher_is_given_no_row_that_is_about_to_leave() -> None:
    """Of a key with rows in two partitions that both left, only the delete is told."""
    with new_log() as log:
        log.write([(b"a", b"old", 0, 1), (b"a", b"new", 1, 2)])
        log.starts |= {0: 1, 1: 1}
        log.leaving.note(log.starts)
        applied = log.leaving.step()
        assert applied is not None
        assert [(shown.key, shown.value) for _, shown in applied.changes()] == [(b"a", None)]


def test_a_row_behind_the_one_that_left_is_shown() -> None:
    with new_log() as log:
        log.write([(b"a", b"old", 0, 1), (b"a", b"new", 1, 2)])
        log.leave((1, 1))
        log.settle()
        assert [record.value for record in log.store.scan()] == [b"old"]
        assert (disagreements(log), log.store.split_keys) == ([], 0)


def test_deletes_by_leaving_are_in_no_log_so_the_place_says_until_where_they_are_missed() -> None:
    with new_log() as log:
        log.write([(b"a", b"1", 0, 0), (b"b", b"2", 1, 0), (b"c", b"3", 0, 0)])
        log.leave((0, 1))
        log.settle()
        assert {p: place.swept_at for p, place in log.store.partitions.items()} == {0: 2, 1: -1, 2: -1}


def test_a_log_start_that_goes_back_with_a_change_of_leader_changes_nothing() -> None:
    with new_log() as log:
        log.write([(b"a", b"1", 0, 0), (b"b", b"2", 0, 0)])
        log.leave((0, 1))
        log.settle()
        log.leaving.note({0: 0, 1: 0, 2: 0})
        assert (str(log.store.log_start), str(log.store.topic_log_start)) == ("0:1,1:0,2:0", "0:1,1:0,2:0")


class Clock:
    """Moves on by a second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Store]:
    """A thousand rows at the offsets 0 to 999."""
    store = Store(tmp_path, readable=lambda _: True)
    rows = [Record(b"%04d" % number, b"1", 0, number, 0) for number in range(1000)]
    store.apply(rows, {0: PartitionState(position=1000)})
    yield store
    store.close()


def test_a_slice_ends_when_its_time_is_over_or_enough_rows_are_removed(full: Store) -> None:
    leaving = ExpiredRows(full, slice_s=0.5, rows_at_once=30, clock=Clock())
    leaving.note({0: 200})
    assert leaving.step() is not None
    assert (len(full), str(full.log_start), str(full.topic_log_start)) == (970, "0:0", "0:200")
    steps = 1
    while leaving.is_under_way:
        leaving.step()
        steps += 1
    # Seven commits for 200 rows, and about 99 rows in a slice where nothing leaves.
    assert 7 + 8 <= steps <= 20
    assert (len(full), str(full.log_start)) == (800, "0:200")


def test_between_two_passes_it_rests_for_a_multiple_of_what_a_pass_took(full: Store) -> None:
    clock = Clock()
    leaving = ExpiredRows(full, slice_s=1e9, rows_at_once=10_000, pause_factor=10, clock=clock)
    leaving.note({0: 100})
    began = clock.now
    assert leaving.step() is not None
    took = clock.now - began
    leaving.note({0: 200})
    assert leaving.step() is None
    assert (len(full), str(full.log_start), str(full.topic_log_start)) == (900, "0:100", "0:200")
    clock.now += 10 * took
    assert leaving.step() is not None
    assert (len(full), str(full.log_start)) == (800, "0:200")


def test_where_no_row_is_below_the_log_start_nothing_is_read(full: Store) -> None:
    leaving = ExpiredRows(full, slice_s=1e9, rows_at_once=10_000, pause_factor=0)
    leaving.note({0: 0})
    assert not leaving.is_behind_first_look
    # Every row is written again, so the lowest offset of a row is 1000.
    full.apply([Record(b"%04d" % n, b"2", 0, 1000 + n, 0) for n in range(1000)], {0: PartitionState(position=2000)})
    leaving.note({0: 10})
    assert leaving.step() is None
    assert (len(full), str(full.log_start)) == (1000, "0:10")
    leaving.note({0: 1000})
    assert (str(full.log_start), leaving.step(), leaving.is_under_way) == ("0:1000", None, False)
    leaving.note({0: 1001})
    assert (str(full.log_start), leaving.step() is None, len(full)) == ("0:1000", False, 999)


def test_what_left_before_the_first_look_is_removed_before_the_table_counts_as_settled(full: Store) -> None:
    leaving = ExpiredRows(full, rows_at_once=10_000, slice_s=1e9)
    leaving.note({0: 5})
    behind = [leaving.is_behind_first_look]
    leaving.step()
    behind.append(leaving.is_behind_first_look)
    leaving.note({0: 6})
    behind.append(leaving.is_behind_first_look)
    assert behind == [True, False, False]


def test_a_partition_that_is_added_during_a_pass_is_left_alone(full: Store) -> None:
    leaving = ExpiredRows(full, slice_s=1e9, rows_at_once=30)
    leaving.note({0: 50})
    leaving.step()
    full.apply([Record(b"zzz", b"1", 7, 0, 0)], {7: PartitionState(position=1)})
    while leaving.is_under_way:
        leaving.step()
    assert full.get(b"zzz") == Record(b"zzz", b"1", 7, 0, 0)
