"""Change streams: order, resuming without loss or doubles, slow readers, resets and the end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lastword.kafka.connection import Connection
from lastword.kafka.topics import create_topic, delete_topic
from lastword.serve.limits import Limits
from lastword.serve.running import Running, Wanted, running
from lastword.table import Table
from support.listening import ChangeReader
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


@pytest.fixture
def table(connection: Connection, topic: str) -> Table:
    return Table(connection, topic)


@pytest.fixture
def served(connection: Connection, topic: str, tmp_path: Path) -> Iterator[Running]:
    with running(connection, [Wanted.parse(f"users={topic}")], tmp_path, port=0) as made:
        made.tables[0].replica.wait_until_ready(30)
        yield made


def changes(served: Running, query: str = "", **headers: str) -> ChangeReader:
    reader = ChangeReader(served.url, f"/tables/users/changes{query}", **headers)
    assert reader.status == 200, reader.body
    return reader


def test_puts_and_deletes_come_in_order_with_the_whole_position_after_each(table: Table, served: Running) -> None:
    with closing(changes(served)) as reader:
        assert reader.headers["content-type"] == "text/event-stream"
        put = table.put("a", {"n": 1})
        gone = table.delete("a")
        first, second = reader.take(2)
    place = {"partition": put.partition, "offset": put.offset}
    assert (first.name, {name: first.content[name] for name in ("key", "value", *place)}) == (
        "put",
        {"key": "a", "value": {"n": 1}, **place},
    )
    assert (second.name, second.content["tombstone"], second.content["offset"]) == ("delete", True, gone.offset)
    assert "value" not in second.content
    assert second.id == ",".join(f"{p}:{gone.offset + 1 if p == gone.partition else 0}" for p in range(3))


def test_a_stream_goes_on_after_the_last_id_without_loss_or_doubles(table: Table, served: Running) -> None:
    with closing(changes(served)) as reader:
        table.put_many([(f"k{number}", number) for number in range(30)])
        seen = [event.content["key"] for event in reader.take(11)]
        last_id = reader.last_id
    table.put_many([(f"later{number}", number) for number in range(30)])
    with closing(changes(served, last_event_id=last_id)) as reader:
        table.put("end", 0)
        seen += [event.content["key"] for event in reader.take(50)]
    assert sorted(seen) == sorted([f"k{n}" for n in range(30)] + [f"later{n}" for n in range(30)] + ["end"])
