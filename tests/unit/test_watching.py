"""Watchers: what they are told, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lastword.core.codecs import codec_named
from lastword.core.errors import ClusterUnreachable, FellBehind, HistoryLost, LastwordError
from lastword.core.position import Position
from lastword.core.record import Record
from lastword.core.row import Row, row_of
from lastword.replica.store.apply_batch import Applied
from lastword.replica.watching import Change, Watch, Watchers


def row(change: Change) -> Row:
    return row_of(change.shown, codec_named("string"), codec_named("string"), swept=change.swept)


def tell(watchers: Watchers, *offsets: int, swept: bool = False) -> None:
    records = [Record(b"a", None if swept else b"%d" % offset, 0, offset, 0) for offset in offsets]
    watchers.publish(Applied(records=records, shown={}), Position({0: offsets[-1] + 1}), swept=swept)


def joined(watchers: Watchers) -> Watch[Row]:
    queue, told = watchers.join()
    return Watch(watchers, queue, told, row)


def values(watch: Watch[Row], count: int) -> list[str]:
    return [next(watch).value for _ in range(count)]


def test_a_watcher_is_told_what_comes_after_it_joined_and_knows_where_it_is() -> None:
    watchers = Watchers(10)
    tell(watchers, 0)
    watch = joined(watchers)
    assert watch.position == {0: 1}
    tell(watchers, 1, 2)
    assert values(watch, 1) == ["1"]
    assert watch.position == {0: 2}
    tell(watchers, 3, swept=True)
    assert [(change.value, change.swept) for change in (next(watch), next(watch))] == [("2", False), (None, True)]


def test_a_full_queue_ends_its_watch_after_what_it_holds_and_no_other() -> None:
    watchers = Watchers(2)
    slow, quick = joined(watchers), joined(watchers)
    tell(watchers, 0, 1)
    assert values(quick, 2) == ["0", "1"]
    tell(watchers, 2)
    assert values(quick, 1) == ["2"]
    assert values(slow, 2) == ["0", "1"]
    with pytest.raises(FellBehind, match="more than 2 changes behind"):
        next(slow)


def test_a_closed_watch_ends_even_while_it_waits() -> None:
    watchers = Watchers(10)
    watch = joined(watchers)
    seen: list[Row] = []
    thread = threading.Thread(target=lambda: seen.extend(watch))
    thread.start()
    watch.close()
    thread.join(120)
    assert not thread.is_alive()
    assert seen == []


def test_a_rebuilt_table_ends_every_watch_with_the_reason() -> None:
    watchers = Watchers(10)
    watch = joined(watchers)
    watchers.restart(Position({0: 5}), "t was recreated")
    with pytest.raises(HistoryLost, match="t was recreated: the table was built again; start over from its rows"):
        next(watch)
    assert joined(watchers).position == {0: 5}


def test_a_failed_table_ends_every_watch_with_its_failure_and_a_closed_one_without() -> None:
    watchers = Watchers(10)
    watch = joined(watchers)
    watchers.close(LastwordError("the disk is full"))
    with pytest.raises(LastwordError, match="the disk is full"):
        next(watch)
    watchers = Watchers(10)
    watch = joined(watchers)
    watchers.close()
    assert list(watch) == []


def test_a_watch_that_nobody_holds_any_more_takes_no_room() -> None:
    watchers = Watchers(10)
    joined(watchers)
    assert watchers._queues == []


def test_a_poll_gives_what_is_there_and_does_not_wait_for_more_than_it_is_told() -> None:
    watchers = Watchers(10)
    watch = joined(watchers)
    assert (watch.poll(), watch.poll(0.01), watch.is_over) == (None, None, False)
    tell(watchers, 0)
    change = watch.poll()
    assert change is not None
    assert change.value == "0"
    watchers.close()
    assert (watch.poll(10), watch.is_over) == (None, True)


def test_a_watch_that_begins_after_the_end_is_over_at_once() -> None:
    watchers = Watchers(10)
    watchers.close(LastwordError("the disk is full"))
    with pytest.raises(LastwordError, match="the disk is full"):
        next(joined(watchers))


def test_after_an_error_in_what_was_missed_nothing_is_given_as_if_there_were_no_gap() -> None:
    def missed() -> Iterator[Change]:
        yield Change(shown=Record(b"a", b"0", 0, 0, 0), partition=0, offset=0)
        raise ClusterUnreachable("gone")

    watchers = Watchers(10)
    queue, _ = watchers.join()
    watch = Watch(watchers, queue, Position({0: 0}), row, missed())
    tell(watchers, 9)
    assert values(watch, 1) == ["0"]
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            next(watch)
    assert watch.position == {0: 1}


def test_nobody_joins_between_the_commit_of_a_batch_and_its_publication() -> None:
    watchers = Watchers(10)
    watches: list[Watch[Row]] = []
    joining = threading.Thread(target=lambda: watches.append(joined(watchers)))
    with watchers.committing():
        joining.start()
        joining.join(0.2)
        assert watches == []
        tell(watchers, 0)
    joining.join()
    tell(watchers, 1)
    assert values(watches[0], 1) == ["1"]


def test_a_watch_that_is_collected_while_a_batch_is_published_leaves() -> None:
    watchers = Watchers(10)
    watch = joined(watchers)
    with watchers.committing():
        watch.close()
        tell(watchers, 0)
    assert watch.poll() is None
