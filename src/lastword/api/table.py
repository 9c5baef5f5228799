"""A table: a compacted topic with a key codec and a value codec, to write and to read."""

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
    """Str keys and JSON values by default. Thread-safe; close it, or use it with `with`."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        key: str = "string",
        value: str = "json",
        replicas: Path | None = None,
    ) -> None:
        """`replicas` is the folder for replicas that are given no folder; by default it is in the home."""
        self.topic = topic
        self._connection = connection
        self._key_codec = codec_named(key)
        self._value_codec = codec_named(value)
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self._replicas_folder = replicas
        self._replicas: list[Replica] = []

    def put(self, key: Any, value: Any, headers: GivenHeaders | None = None) -> Ack:
        """Writes the value and returns when all in-sync replicas have acknowledged it.

        `headers` are a mapping, or pairs as in a `Row`, where a name may repeat.
        """
        return self._open_writer().write(
            self._key_codec.encode_key(key), self._value_codec.encode(value), _headers(headers)
        )

    def delete(self, key: Any, headers: GivenHeaders | None = None) -> Ack:
        """Writes a tombstone, whether or not the key exists."""
        return self._open_writer().write(self._key_codec.encode(key), None, _headers(headers))

    def put_many(self, rows: Iterable[tuple[Any, Any]]) -> int:
        """Writes (key, value) pairs at full speed; returns the number of acknowledged rows, which is all, or raises."""
        encode_key, encode_value = self._key_codec.encode_key, self._value_codec.encode
        return load(self._connection, self.topic, (Write(encode_key(key), encode_value(value)) for key, value in rows))

    def get(self, key: Any, default: Any = None) -> Any:
        """The newest value of a key, read from the key's own partition; `default` if the key does not exist."""
        row = self.row(key)
        return default if row is None else row.value

    def row(self, key: Any) -> Row | None:
        """The newest row of a key, or None."""
        key_bytes = self._key_codec.encode(key)
        record = fold_topic(self._connection, self.topic, key=key_bytes, all_partitions=False).rows.get(key_bytes)
        return None if record is None else self._row(record)

    def scan(self, prefix: str | bytes = b"") -> Iterator[Row]:
        """The live rows in key order, as of the last stable offsets; holds the table in memory while it runs."""
        prefix_bytes = prefix.encode() if isinstance(prefix, str) else prefix
        rows = fold_topic(self._connection, self.topic).rows
        for key in sorted(rows):
            if key.startswith(prefix_bytes):
                yield self._row(rows[key])

    def count(self) -> int:
        """The exact number of live keys."""
        return len(fold_topic(self._connection, self.topic).rows)

    def watch(self, start: Position | str | None = None) -> Iterator[Row]:
        """Puts and deletes as they are committed, from now or from a position, without end.

        Partitions that the position does not name start now.
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
        """A durable local copy that follows the topic, as a Mapping; with `wait` it is ready on return.

        The default folder is in the home, one for each cluster and topic. One process can use a folder at a time.
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
        with self._lock:
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

    def _open_writer(self) -> Writer:
        with self._lock:
            if self._writer is None:
                self._writer = Writer(self._connection, self.topic)
            return self._writer

    def _default_folder(self) -> Path:
        folder = self._replicas_folder or default_home() / "replicas"
        return folder / str(self._connection.reach().cluster_id) / self.topic

    def _row(self, record: Record) -> Row:
        return row_of(record, self._key_codec, self._value_codec)


def _folder(path: Path | str) -> Path:
    if not isinstance(path, Path | str) or not str(path):
        raise BadInput(f"folder={path!r} is not a path: pass the path of a folder")
    return Path(path).expanduser().absolute()


def _headers(headers: GivenHeaders | None) -> Headers:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return tuple((header_name(name), text.encode() if isinstance(text, str) else text) for name, text in pairs)
