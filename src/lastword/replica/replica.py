"""The replica as a program sees it: a Mapping with the newest row of each key, on local disk, following the topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, ItemsView, Iterator, Mapping, ValuesView
from pathlib import Path
from typing import Any, TypeVar

from rocksdict import DbClosedError

from lastword.core.codecs import Codec
from lastword.core.errors import BadInput, ClusterUnreachable, NotReady
from lastword.core.position import Position
from lastword.core.row import Row, row_of
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.writing import Ack
from lastword.replica.following import Follower
from lastword.replica.reads import TableReads, after_prefix
from lastword.replica.replay import changes_between
from lastword.replica.settings import ReplicaSettings, ReplicaSteps
from lastword.replica.state import State
from lastword.replica.store.store import Store
from lastword.replica.watching import Change, Watch

_Answer = TypeVar("_Answer")
_Shape = TypeVar("_Shape")


class Replica(Mapping[Any, Any]):
    """Thread-safe; close it, or use it with `with`. Keys are in the order of their bytes.

    A value that the codec can't read is given as bytes; `row` and `scan` say why in `decode_error`.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        folder: Path,
        *,
        key_codec: Codec,
        value_codec: Codec,
        settings: ReplicaSettings,
        steps: ReplicaSteps | None = None,
    ) -> None:
        self.topic = topic
        self.folder = folder
        self._connection = connection
        self._key_codec = key_codec
        self._value_codec = value_codec
        self._follower = Follower(
            connection,
            topic,
            folder,
            key_codec=key_codec,
            value_codec=value_codec,
            settings=settings,
            steps=steps or ReplicaSteps(),
        )

    def __getitem__(self, key: Any) -> Any:
        row = self.row(key)
        if row is None:
            raise KeyError(key)
        return row.value

    def __contains__(self, key: object) -> bool:
        return self._ask(lambda store: store.get(self._key_codec.encode(key))) is not None

    def __iter__(self) -> Iterator[Any]:
        return (row.key for row in self.scan())

    def __len__(self) -> int:
        return self._ask(len)

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self)

    def row(self, key: Any) -> Row | None:
        """The key's row with partition, offset and timestamp, or None."""
        record = self._ask(lambda store: store.get(self._key_codec.encode(key)))
        return None if record is None else row_of(record, self._key_codec, self._value_codec)

    def last_good(self, key: Any) -> Any:
        """For a key whose newest value can't be read: the last value that could be read; otherwise None."""
        raw = self._ask(lambda store: store.last_good(self._key_codec.encode(key)))
        return None if raw is None else self._value_codec.decode(raw)

    def scan(self, prefix: str | bytes = b"", start: Any = None, end: Any = None) -> Iterator[Row]:
        """Rows with the prefix and start <= key < end, in key order, all as they were when the scan began."""
        first = prefix.encode() if isinstance(prefix, str) else prefix
        if not isinstance(first, bytes):
            raise BadInput(f"prefix={prefix!r}: give text, or bytes")
        last = after_prefix(first)
        if start is not None:
            first = max(first, self._key_codec.encode(start))
        if end is not None:
            before = self._key_codec.encode(end)
            last = before if last is None else min(last, before)
        records = self._ask(lambda store: store.scan(first, last))
        return (row_of(record, self._key_codec, self._value_codec) for record in records)

    def ask(self, question: Callable[[TableReads], _Answer]) -> _Answer:
        """The result of a function that reads the open store, for callers who want bytes (see `reads`)."""
        return self._ask(lambda store: question(TableReads(store)))

    def watch(self, start: Position | str | None = None) -> Watch[Row]:
        """Changes of rows, from now or from a position, until the replica is closed.

        From a position, the changes since then are read from Kafka again: HistoryLost when a tombstone among them may
        be gone. A partition that the position does not name counts as unread: its changes come from its start.
        """
        return self.changes(start, self._row_of_change)

    def changes(self, start: Position | str | None, shape: Callable[[Change], _Shape]) -> Watch[_Shape]:
        """The same, with `shape` applied to each change, for callers who want bytes."""
        begin = None if start is None else _position(start)
        if self._follower.failure is not None:
            raise self._follower.failure
        store, watchers = self._ask(lambda store: store), self._follower.watchers
        queue, joined_at = watchers.join()
        if begin is None:
            return Watch(watchers, queue, joined_at, shape)
        try:
            missed = self._missed(store, begin, joined_at)
        except BaseException:
            watchers.leave(queue)
            raise
        return Watch(watchers, queue, begin, shape, missed)

    def changes_between(
        self, begin: Position, end: Position, *, goes_on: bool = False, check_wanted: Callable[[], None] | None = None
    ) -> Generator[Change, None, None]:
        """The changes from a past position up to another, read from Kafka again; HistoryLost as in `watch`.

        `goes_on` says that a part was read before: records are then checked while they are read, not all beforehand.
        Between two batches `check_wanted` may raise, to end the read.
        """
        store = self._ask(lambda store: store)
        return self._missed(store, begin, end, goes_on=goes_on, check_wanted=check_wanted)

    def wait_for(self, target: Ack | Position | str, timeout_s: float = 10.0) -> None:
        """Returns when the replica has reached a write or a position, NotReady when it has not in time."""
        wanted = _position(target)
        self.look_for(wanted)
        self._wait(lambda: self.position.covers(wanted), f"it has not reached {wanted}", timeout_s)

    def look_for(self, wanted: Position) -> None:
        """Checks the topic soon if a position names an unknown partition, which may be a new one."""
        if not wanted.keys() <= self.position.keys():
            self._follower.recheck.set()

    def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Returns when the replica is ready: without a timeout it waits as long as the cluster answers."""
        self._wait(lambda: self.state.name == "ready", "it is not ready", timeout_s)

    @property
    def state(self) -> State:
        return self._follower.state

    @property
    def position(self) -> Position:
        """Everything before it is in the rows."""
        store = self._follower.store
        return Position() if store is None else store.position

    @property
    def log_start(self) -> Position:
        """The rows are the fold of the log from here on: rows from before it were removed with their records."""
        return self._ask(lambda store: store.log_start)

    @property
    def lag(self) -> int:
        """How many offsets the topic is ahead, by the last known end."""
        position = self.position
        return sum(max(0, end - position.get(partition, 0)) for partition, end in self._follower.ends.items())

    @property
    def split_keys(self) -> int:
        """Keys with live rows in more than one partition; the row with the later (timestamp, partition) is shown."""
        return self._ask(lambda store: store.split_keys)

    @property
    def poison_rows(self) -> int:
        """Rows whose value the codec can't read."""
        return self._ask(lambda store: store.poison_rows)

    @property
    def damages_found(self) -> int:
        """How often its store was found damaged, and built again, since it was opened."""
        return self._follower.damages_found

    @property
    def is_closed(self) -> bool:
        return self._follower.is_stopped

    def close(self) -> None:
        self._follower.stop()

    def __enter__(self) -> Replica:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: Callable[[Store], _Answer]) -> _Answer:
        """The same with the store itself. A reference to the store keeps it open."""
        store = self._follower.store
        try:
            if store is not None:
                return question(store)
        except DbClosedError:
            pass  # another thread has closed it just now
        raise self._nothing_to_show()

    def _wait(self, is_done: Callable[[], bool], problem: str, timeout_s: float | None) -> None:
        if timeout_s is not None and not isinstance(timeout_s, int | float):
            raise BadInput(f"timeout_s={timeout_s!r}: give a number of seconds")
        follower, began = self._follower, time.monotonic()
        with follower.changed:
            while not is_done():
                if follower.failure is not None:
                    raise follower.failure
                if follower.is_stopped:
                    raise self._nothing_to_show()
                waited = time.monotonic() - began
                if timeout_s is not None and waited >= timeout_s:
                    raise NotReady(
                        f"the replica of {self.topic}: {problem} within {timeout_s:g} s, its state is {self.state} and "
                        f"its position {self.position or 'none yet'}: wait longer with timeout_s"
                    )
                if timeout_s is None and follower.away_for_s > self._connection.patience_s:
                    raise follower.away or ClusterUnreachable(
                        f"no Kafka answers at {self._connection.bootstrap_servers}: is it up?  lastword broker status"
                    )
                follower.changed.wait(0.2 if timeout_s is None else min(0.2, timeout_s - waited))

    def _nothing_to_show(self) -> NotReady:
        if self._follower.is_stopped:
            return NotReady(f"the replica of {self.topic} is closed: open it again with  table.replica()")
        return NotReady(
            f"the replica of {self.topic} has nothing to show yet ({self.state}): wait for it with  wait_until_ready()"
        )

    def _missed(
        self,
        store: Store,
        begin: Position,
        end: Position,
        *,
        goes_on: bool = False,
        check_wanted: Callable[[], None] | None = None,
    ) -> Generator[Change, None, None]:
        def check() -> None:
            self._check_open()
            if check_wanted is not None:
                check_wanted()

        return changes_between(
            self._connection,
            store,
            begin,
            end,
            look_first=not goes_on,
            check_wanted=check,
        )

    def _check_open(self) -> None:
        if self.is_closed:
            raise self._nothing_to_show()

    def _row_of_change(self, change: Change) -> Row:
        return row_of(change.shown, self._key_codec, self._value_codec, swept=change.swept)

    def __repr__(self) -> str:
        return f"<replica of {self.topic} at {self.position}: {self.state}>"


class _Values(ValuesView[Any]):
    """Like the view of a Mapping, but over one scan: no key is looked up again."""

    _mapping: Replica

    def __iter__(self) -> Iterator[Any]:
        return (row.value for row in self._mapping.scan())


class _Items(ItemsView[Any, Any]):
    _mapping: Replica

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((row.key, row.value) for row in self._mapping.scan())


def _position(given: object) -> Position:
    match given:
        case Ack():
            return given.position
        case Position():
            return given
        case str():
            return Position.parse(given)
        case _:
            raise BadInput(f"{given!r} is not a position: give an Ack, a Position, or text like 0:18,1:5")
