"""Change streams: order, resuming without loss or doubles, slow readers, resets and the end."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.serve.changes.broadcast import Broadcast
from lastword.serve.http.access_log import AccessLog
from lastword.serve.http.limits import Limits
from lastword.serve.running import Front, Running, TableToServe, running
from support.change_reader import ChangeReader
from support.generated_logs import Act, Put, write_log
from support.replicas import QUICK, make_ghosts, recreate, write_rows
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
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0)) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made


def changes(served: Running, query: str = "", **headers: str) -> ChangeReader:
    reader = ChangeReader(served.url, f"/tables/users/changes{query}", **headers)
    assert reader.status == 200, reader.body
    return reader


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def metrics(served: Running) -> bytes:
    asking = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    asking.request("GET", "/metrics")
    told = asking.getresponse().read()
    asking.close()
    return told


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


def test_a_stream_begins_with_where_it_is_so_that_a_reader_who_saw_nothing_loses_nothing(
    table: Table, served: Running
) -> None:
    table.put("before", 1)
    with closing(changes(served, "?after=0:0,1:0,2:0")) as reader:
        assert [event.content["key"] for event in reader.take(1)] == ["before"]
        begun_at = reader.last_id
    with closing(changes(served)) as reader:
        assert reader.headers["x-lastword-position"] == begun_at
        table.put("meanwhile", 1)
        assert [event.content["key"] for event in reader.take(1)] == ["meanwhile"]
    with closing(changes(served, last_event_id=begun_at)) as reader:
        assert [event.content["key"] for event in reader.take(1)] == ["meanwhile"]


def test_what_was_missed_comes_whole_in_however_many_legs_it_takes(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    limits = Limits(stream_bytes=3000, missed_bytes=2000)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0), limits=limits) as served:
        served.tables[0].replica.wait_until_ready(120)
        table.put_many([(f"k{number:03}", "x" * 100) for number in range(100)])
        with closing(changes(served, "?after=0:0,1:0,2:0")) as reader:
            # More than the broadcast holds comes while this reader is still in what it missed.
            first = reader.take(5)
            table.put_many([(f"k{number:03}", "x" * 100) for number in range(100, 200)])
            seen = [event.content["key"] for event in first + reader.take(195)]
        assert sorted(seen) == [f"k{number:03}" for number in range(200)]


def test_a_position_past_the_end_of_the_log_is_gone(table: Table, served: Running) -> None:
    acks = [table.put(f"k{number}", number) for number in range(6)]
    ahead = {ack.partition: ack.offset + 1 for ack in acks}
    # One more than there is, in the partition that the next record goes to.
    coming = acks[0].partition
    ahead[coming] += 1
    last_id = ",".join(f"{p}:{ahead.get(p, 0)}" for p in range(3))
    reader = ChangeReader(served.url, "/tables/users/changes", last_event_id=last_id)
    assert (reader.status, reader.body["error"]["code"]) == (410, "position_gone")
    reader.close()


def test_a_reader_who_was_ahead_of_this_instance_sees_nothing_twice(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    wanted = [TableToServe.parse(f"users={topic}")]
    with running(connection, wanted, tmp_path, Front(port=0)) as served:
        served.tables[0].replica.wait_until_ready(120)
    table.put_many((f"k{number}", number) for number in range(60_000))
    last_id = str(log_bounds(connection, topic)[1])
    with running(connection, wanted, tmp_path, Front(port=0)) as served:
        # It has just begun to read what another instance has told this reader already.
        assert str(served.tables[0].replica.position) != last_id
        with closing(changes(served, last_event_id=last_id)) as reader:
            table.put("new", 1)
            assert [event.content["key"] for event in reader.take(1)] == ["new"]


def test_a_value_on_several_lines_stays_one_event(connection: Connection, topic: str, served: Running) -> None:
    with closing(changes(served)) as reader:
        write_rows(connection, topic, [(0, b"a", b'{"text": "a\\nb",\r\n "n":\n1}')])
        assert [event.content["value"] for event in reader.take(1)] == [{"text": "a\nb", "n": 1}]


def test_several_tables_come_in_one_stream_and_go_on_together(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    other = f"{topic}-other"
    create_topic(connection, other, partitions=1)
    second = Table(connection, other, value="string")
    wanted = [TableToServe.parse(f"users={topic}"), TableToServe.parse(f"notes={other},value=string")]
    with running(connection, wanted, tmp_path, Front(port=0)) as served:
        for each in served.tables:
            each.replica.wait_until_ready(120)
        with closing(ChangeReader(served.url, "/changes?tables=users,notes")) as reader:
            table.put("a", 1)
            (first,) = reader.take(1)
            second.put("b", "two")
            (event,) = reader.take(1)
            assert [(each.content["table"], each.content["key"]) for each in (first, event)] == [
                ("users", "a"),
                ("notes", "b"),
            ]
            assert event.id == f"{first.id.split(';')[0]};notes=0:1"
            last_id = event.id
        second.put("b", "three")
        table.delete("a")
        with closing(ChangeReader(served.url, "/changes", last_event_id=last_id)) as reader:
            told = {(each.content["table"], each.name) for each in reader.take(2)}
            assert told == {("users", "delete"), ("notes", "put")}
        refused = ChangeReader(served.url, "/changes?tables=users,nobody")
        assert (refused.status, refused.body["error"]["code"]) == (404, "no_such_table")
        refused.close()
    second.close()


@pytest.mark.parametrize("position", ["x", "0:1,0:2", "0:-1", "9:1", "users=0:1"])
def test_a_position_that_is_none_is_refused(served: Running, position: str) -> None:
    reader = ChangeReader(served.url, "/tables/users/changes", last_event_id=position)
    expected = (410, "position_gone") if position == "9:1" else (400, "bad_position")
    assert (reader.status, reader.body["error"]["code"]) == expected
    reader.close()


def test_a_position_whose_tombstones_may_be_gone_is_gone(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("b", 2)])
    make_ghosts(connection, topic_name, tmp_path / "home", "a")
    with running(connection, [TableToServe.parse(f"users={topic_name}")], tmp_path / "data", Front(port=0)) as served:
        served.tables[0].replica.wait_until_ready(120)
        reader = ChangeReader(served.url, "/tables/users/changes", last_event_id="0:2")
        assert (reader.status, reader.body["error"]["code"]) == (410, "position_gone")
        assert "start over" in reader.body["error"]["message"]
        reader.close()


def test_rows_and_then_changes_after_their_position_work_also_where_a_sweep_stopped(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1, settings=QUICK)
    wanted = [TableToServe.parse(f"users={topic_name}")]
    with Table(connection, topic_name) as users:
        users.put_many([("a", 1), ("b", 2)])
        with running(connection, wanted, tmp_path / "data", Front(port=0)) as served:
            served.tables[0].replica.wait_until_ready(120)
        make_ghosts(connection, topic_name, tmp_path / "home", "a")
        with running(connection, wanted, tmp_path / "data", Front(port=0)) as served:
            served.tables[0].replica.wait_until_ready(120)
            assert list(served.tables[0].replica) == ["b"]
            position = served.tables[0].replica.position
            with closing(changes(served, f"?after={position}")) as reader:
                # Whether this reader knows of the delete can't be told, so it is to look at the rows.
                assert [(event.name, event.id) for event in reader.take(1)] == [("reset", str(position))]
                users.put("c", 3)
                assert [event.content["key"] for event in reader.take(1)] == ["c"]
                last_id = reader.last_id
            with closing(changes(served, last_event_id=last_id)) as reader:
                users.put("d", 4)
                assert [event.content["key"] for event in reader.take(1)] == ["d"]


def test_a_position_with_a_partition_that_is_new_here_is_waited_for(
    connection: Connection, topic: str, table: Table, served: Running
) -> None:
    alter_topic(connection, topic, partitions=4, move_keys=True)
    eventually(lambda: 3 in log_bounds(connection, topic)[1])
    write_rows(connection, topic, [(3, b"new", b"1")])
    with closing(changes(served, "?after=0:0,1:0,2:0,3:1")) as reader:
        write_rows(connection, topic, [(3, b"newer", b"2")])
        assert [event.content["key"] for event in reader.take(1)] == ["newer"]


def test_ids_of_a_quiet_stream_pass_over_what_changed_no_row(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    limits = Limits(heartbeat_s=0.2)
    with running(
        connection, [TableToServe.parse(f"users={topic_name}")], tmp_path, Front(port=0), limits=limits
    ) as served:
        served.tables[0].replica.wait_until_ready(120)
        with closing(changes(served)) as reader:
            # The marker of a transaction takes an offset too.
            write_log(connection, topic_name, [Act(puts=(Put(key=b"a", value=b"1", partition=0),), ending="commit")])
            assert reader.take(1)[0].id in ("0:1", "0:2")
            with pytest.raises(TimeoutError):
                reader.take(1, timeout_s=2)
            assert reader.last_id == "0:2" == str(served.tables[0].replica.position)


def test_a_broadcast_that_fell_behind_catches_up_at_once(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    create_topic(connection, topic_name, partitions=1)
    with Table(connection, topic_name) as users, users.replica(tmp_path, watch_capacity=200) as replica:
        began, seen = time.monotonic(), list[str]()

        async def listen() -> None:
            broadcast = Broadcast(replica, lambda change, _: (change.shown.key or b"") + b"\n", most_bytes=10_000_000)
            place = broadcast.now
            await asyncio.to_thread(users.put_many, [(f"k{number:04}", number) for number in range(3000)])
            while len(seen) < 3000 and time.monotonic() < began + 20:
                found = broadcast.after(place)
                if found is None:
                    await asyncio.sleep(0.01)
                else:
                    told, place = found
                    seen.extend(told.decode().split())
            broadcast.close()

        asyncio.run(listen())
        assert seen == [f"k{number:04}" for number in range(3000)]


def test_no_more_is_given_to_a_slow_reader_than_it_takes(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    out = io.BytesIO()
    access = AccessLog(out)
    front = Front(port=0, access=access)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, front) as served:
        served.tables[0].replica.wait_until_ready(120)
        table.put_many([(f"k{number}", "x" * 50_000) for number in range(600)])
        served.tables[0].replica.wait_for(table.put("end", 1))
        with socket.create_connection(address_of(served.url)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            slow.sendall(b"GET /tables/users/changes?after=0:0,1:0,2:0 HTTP/1.1\r\nhost: localhost\r\n\r\n")
            taken = 0
            for _ in range(100):
                taken += len(slow.recv(65_536))
                time.sleep(0.02)
        eventually(lambda: b"changes" in out.getvalue())
    access.close()
    (line,) = (json.loads(line) for line in out.getvalue().splitlines())
    assert taken < 10_000_000
    # What the system keeps for both ends, and a little more.
    assert line["bytes"] - taken < 3_000_000


def test_readers_are_told_when_the_table_was_built_again(connection: Connection, topic: str, served: Running) -> None:
    with Table(connection, topic) as users, closing(changes(served)) as reader:
        users.put("old", 1)
        assert reader.take(1)[0].content["key"] == "old"
        recreate(connection, topic, [(0, b"new", b"2")])
        # What is read of the new topic before it is found to be another one may come first.
        events = reader.events(timeout_s=30)
        reset = next(event for event in events if event.name == "reset")
        after = next(events)
        assert (reset.id, after.name, after.content["key"]) == ("0:0", "put", "new")


def test_a_quiet_stream_is_kept_alive(connection: Connection, topic: str, tmp_path: Path) -> None:
    limits = Limits(heartbeat_s=0.1)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0), limits=limits) as served:
        served.tables[0].replica.wait_until_ready(120)
        with closing(changes(served)) as reader, pytest.raises(TimeoutError):
            reader.take(1, timeout_s=1)
        assert reader.comments >= 3
        assert reader.last_id == "0:0,1:0,2:0"


def test_only_so_many_streams_are_open_and_one_that_ends_makes_room(
    connection: Connection, topic: str, tmp_path: Path
) -> None:
    limits = Limits(streams=2)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0), limits=limits) as served:
        served.tables[0].replica.wait_until_ready(120)
        first, second = changes(served), changes(served)
        third = ChangeReader(served.url, "/tables/users/changes")
        assert (third.status, third.body["error"]["code"]) == (503, "too_many_streams")
        first.close()
        eventually(lambda: _opens(served))
        for each in (second, third):
            each.close()


def _opens(served: Running) -> bool:
    reader = ChangeReader(served.url, "/tables/users/changes")
    reader.close()
    return reader.status == 200


def test_a_reader_who_takes_nothing_is_cut_off_and_no_other(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    # More than all of it, so that nobody falls behind for another reason.
    limits = Limits(stall_s=1.0, stream_bytes=64 * 1024 * 1024)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0), limits=limits) as served:
        served.tables[0].replica.wait_until_ready(120)
        stalled, quick = changes(served), changes(served)
        seen: list[int] = []
        reading = threading.Thread(target=lambda: seen.extend(e.content["value"]["n"] for e in quick.take(400)))
        reading.start()
        for number in range(400):
            table.put("a", {"n": number, "text": "x" * 50_000})
        reading.join(60)
        assert seen == list(range(400))
        eventually(lambda: b'lastword_streams_cut_total{reason="stalled"} 1.0' in metrics(served))
        # The server has ended the connection: what is left to read is what the system had taken, and no more.
        with pytest.raises((ConnectionError, ValueError)):
            list(stalled.events(timeout_s=5))
        stalled.close()
        quick.close()


def test_a_slow_reader_is_told_why_it_was_cut_off_and_can_go_on(
    connection: Connection, topic: str, table: Table, tmp_path: Path
) -> None:
    limits = Limits(stream_bytes=1024 * 1024)
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0), limits=limits) as served:
        served.tables[0].replica.wait_until_ready(120)
        with closing(changes(served)) as slow:
            for number in range(200):
                table.put("a", {"n": number, "text": "x" * 50_000})
            served.tables[0].replica.wait_for(table.put("a", {"n": 200}))
            *told, cut = slow.events()
        assert (cut.name, cut.content["error"]["code"]) == ("cut", "fell_behind")
        seen = [event.content["value"]["n"] for event in told]
        assert seen == list(range(len(seen)))
        with closing(changes(served, last_event_id=slow.last_id)) as again:
            seen += [event.content["value"]["n"] for event in again.take(201 - len(seen))]
        assert seen == list(range(201))


def test_a_server_that_stops_says_so_to_those_who_listen(connection: Connection, topic: str, tmp_path: Path) -> None:
    with running(connection, [TableToServe.parse(f"users={topic}")], tmp_path, Front(port=0)) as served:
        served.tables[0].replica.wait_until_ready(120)
        reader = changes(served)
        began = time.monotonic()
    assert [event.content["error"]["code"] for event in reader.events()] == ["stopping"]
    # Not held up by the stream.
    assert time.monotonic() - began < 4
    reader.close()


def test_head_of_a_stream_ends(served: Running) -> None:
    asking = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    asking.request("HEAD", "/tables/users/changes")
    told = asking.getresponse()
    assert (told.status, told.headers["content-type"], told.read()) == (200, "text/event-stream", b"")
    asking.close()
