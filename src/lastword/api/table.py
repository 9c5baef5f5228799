"""A table: a compacted topic with a key codec and a value codec, to write and to ask."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.core.headers import header_name
from lastword.core.home import default_home
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.core.row import Row, row_of
from lastword.core.row_json import Write
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import load
from lastword.kafka.client.reading import fold_topic, follow
from lastword.kafka.client.writing import Ack, Writer
from lastword.replica.replica import Replica
from lastword.replica.settings import OnLostRecords, ReplicaSettings

_DEFAULTS = ReplicaSettings()

GivenHeaders = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class Table:
    """Str keys and JSON values unless told otherwise. Thread-safe; close it, or use it with `with`."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        key: str = "string",
        value: str = "json",
        replicas: Path | None = None,
    ) -> None:
        """`replicas` is the folder for replicas that are not told where to live; a folder of the home by default."""
        self.topic = topic
        self._connection = connection
        self._key_codec = codec_named(key)
        self._value_codec = codec_named(value)
        self._writer: Writer | None = None
        self._making = threading.Lock()
        self._replicas_folder = replicas
        self._replicas: list[Replica] = []

    def put(self, key: Any, value: Any, headers: GivenHeaders | None = None) -> Ack:
        """Writes the value and returns when it is acknowledged by all in-sync replicas.

        `headers` are a mapping, or pairs as a `Row` has them: of these a name may come twice.
        """
        return self._writing().write(
            self._key_codec.encode_key(key), self._value_codec.encode(value), _headers(headers)
        )

    def delete(self, key: Any, headers: GivenHeaders | None = None) -> Ack:
        """Writes a tombstone, whether or not the key is there."""
        return self._writing().write(self._key_codec.encode(key), None, _headers(headers))

    def put_many(self, rows: Iterable[tuple[Any, Any]]) -> int:
        """Writes (key, value) pairs at full speed; returns how many were acknowledged, all of them unless it raises."""
        encode_key, encode_value = self._key_codec.encode_key, self._value_codec.encode
        return load(self._connection, self.topic, (Write(encode_key(key), encode_value(value)) for key, value in rows))

    def get(self, key: Any, default: Any = None) -> Any:
        """The newest value of a key, read from the key's own partition; `default` for one that is not there."""
        row = self.row(key)
        return default if row is None else row.value

    def row(self, key: Any) -> Row | None:
        """The newest row of a key, or None."""
        wanted = self._key_codec.encode(key)
        record = fold_topic(self._connection, self.topic, key=wanted, all_partitions=False).rows.get(wanted)
        return None if record is None else self._row(record)

    def scan(self, prefix: str | bytes = b"") -> Iterator[Row]:
        """The live rows in key order, at the last stable offsets; holds the table in memory while it runs."""
        wanted = prefix.encode() if isinstance(prefix, str) else prefix
        rows = fold_topic(self._connection, self.topic).rows
        for key in sorted(rows):
            if key.startswith(wanted):
                yield self._row(rows[key])

    def count(self) -> int:
        """How many keys are live, exactly."""
        return len(fold_topic(self._connection, self.topic).rows)

    def watch(self, start: Position | str | None = None) -> Iterator[Row]:
        """Puts and deletes as they are committed, from now or from a position, without end.

        Partitions that the position does not name are watched from now on.
        """
        begin = Position.parse(start) if isinstance(start, str) else start
        for batch in follow(self._connection, self.topic, start=begin):
            for record in batch:
                if record.key is not None:
                    yield self._row(record)

    def replica(
        self,
        folder: Path | str | None = None,
        *,
        wait: bool = True,
        memory_mb: int = _DEFAULTS.memory_mb,
        on_lost_records: OnLostRecords = _DEFAULTS.on_lost_records,
        last_good_mb: int = _DEFAULTS.last_good_mb,
        watch_capacity: int = _DEFAULTS.watch_capacity,
        transaction_patience_s: float = _DEFAULTS.transaction_patience_s,
        check_every_s: float = _DEFAULTS.check_every_s,
    ) -> Replica:
        """A durable local copy that follows the topic, as a Mapping; returns when it is ready, or at once.

        Without a folder it lives under the home, one for each cluster and topic, and has one owner at a time.
        """
        replica = Replica(
            self._connection,
            self.topic,
            _folder(folder) if folder is not None else self._default_folder(),
            key_codec=self._key_codec,
            value_codec=self._value_codec,
            settings=ReplicaSettings(
                memory_mb=memory_mb,
                on_lost_records=on_lost_records,
                last_good_mb=last_good_mb,
                watch_capacity=watch_capacity,
                transaction_patience_s=transaction_patience_s,
                check_every_s=check_every_s,
            ),
        )
        with self._making:
            self._replicas = [*(each for each in self._replicas if not each.is_closed), replica]
        if wait:
            try:
                replica.wait_until_ready()
            except BaseException:
                replica.close()
                raise
        return replica

    def close(self) -> None:
        for replica in self._replicas:
            replica.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _writing(self) -> Writer:
        with self._making:
            if self._writer is None:
                self._writer = Writer(self._connection, self.topic)
            return self._writer

    def _default_folder(self) -> Path:
        folder = self._replicas_folder or default_home() / "replicas"
        return folder / str(self._connection.reach().cluster_id) / self.topic

    def _row(self, record: Record) -> Row:
        return row_of(record, self._key_codec, self._value_codec)


def _folder(given: Path | str) -> Path:
    if not isinstance(given, Path | str) or not str(given):
        raise BadInput(f"folder={given!r}: give the path of a folder")
    return Path(given).expanduser().absolute()


def _headers(given: GivenHeaders | None) -> Headers:
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    return tuple((header_name(name), text.encode() if isinstance(text, str) else text) for name, text in pairs)
