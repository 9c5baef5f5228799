"""The row verbs as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.api.table import Table
from lastword.core.errors import LastwordError
from lastword.core.fold import fold
from lastword.core.key_partition import partition_of
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.waiting import eventually


@pytest.fixture
def topic(connection: Connection, topic_name: str) -> str:
    create_topic(connection, topic_name, partitions=3)
    return topic_name


def jsons(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_was_put_is_got_and_what_was_deleted_is_not_there(lastword: CommandLine, topic: str) -> None:
    value = '{"name": "Alice", "big": 123456789012345678901234567890}'
    place = json.loads(lastword("put", topic, "user-1", value, "--json"))
    assert place == {"partition": partition_of(b"user-1", 3), "offset": 0, "position": f"{place['partition']}:1"}
    assert lastword("get", topic, "user-1") == value + "\n"
    lastword("delete", topic, "user-1")
    gone = lastword.run("get", topic, "user-1")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.startswith(f"lastword: no key 'user-1' in {topic}")


def test_json_null_and_the_empty_text_are_values(lastword: CommandLine, topic: str) -> None:
    lastword("put", topic, "nothing", "null")
    lastword("put", topic, "empty", "", "--value-codec", "string")
    assert lastword("get", topic, "nothing") == "null\n"
    assert lastword("get", topic, "empty", "--value-codec", "string") == "\n"
    assert lastword("count", topic) == "2\n"


def test_headers_travel_with_the_record(lastword: CommandLine, topic: str) -> None:
    lastword("put", topic, "a", "1", "--header", "source=test", "--header", "source=again")
    [row] = jsons(lastword("scan", topic, "--json"))
    assert row["headers"] == [["source", "test"], ["source", "again"]]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("put", "{topic}", "a", "oops"), "'oops' is not JSON"),
        (("put", "{topic}", "", "1"), "the key is empty"),
        (("put", "{topic}", "__lastword_nudge", "1"), "reserved"),
        (("put", "{topic}", "a", "1", "--header", "x"), "--header 'x'"),
        (("put", "{topic}", "a", "1", "--value-codec", "jso"), "did you mean 'json'"),
        (("get", "{topic}", "abc", "--key-codec", "int"), "not a whole number"),
        (("watch", "{topic}", "--from", "0-5"), "is not PARTITION:NEXT_OFFSET"),
        (("records", "{topic}", "--partition", "9"), "has no partition 9"),
        (("load", "{topic}", "/no/such/file"), "No such file"),
        (("frobnicate",), "no verb 'frobnicate'"),
        (("put", "{topic}", "a", "1", "--header", "\udcff=k"), "not valid UTF-8"),
        (("put", "{topic}", "a", "1", "--header", "k=\udcff"), "not valid UTF-8"),
        (("scan", "{topic}", "--prefix", "\udcff"), "not valid UTF-8"),
        (("scan", "{topic}", "--prefx", "a"), "unrecognized arguments: --prefx a: see  lastword scan --help"),
        (("topic", "create", "wide", "--partitions", "99999999999"), "a topic can have 1 to 100000"),
        (("count", "{topic}", "--bootstrap-servers", "\udcff"), "not valid UTF-8"),
        (("scna", "{topic}"), "did you mean 'scan'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    lastword: CommandLine, topic: str, words: tuple[str, ...], complaint: str
) -> None:
    done = lastword.run(*(word.format(topic=topic) for word in words))
    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) == 1
    assert lastword("records", topic, "--json") == ""


def test_a_topic_that_is_not_there_is_exit_code_1_with_the_nearest_name(lastword: CommandLine, topic: str) -> None:
    done = lastword.run("scan", topic[:-1])
    assert done.returncode == 1
    assert f"did you mean '{topic}'?" in done.stderr


def test_load_takes_json_lines_and_key_value_lines(lastword: CommandLine, topic: str) -> None:
    lines = '{"key":"a","value":{"n":1}}\n\n{"key":"b","value":null}\n{"key":"a","tombstone":true}\n'
    assert lastword("load", topic, "-", given=lines) == "3 records acknowledged\n"
    assert (
        lastword("load", topic, "-", "--null-marker", "NULL", given="b:NULL\nc:5\r\nd:[1]\n")
        == "3 records acknowledged\n"
    )
    assert [(row["key"], row["value"]) for row in jsons(lastword("scan", topic, "--json"))] == [("c", 5), ("d", [1])]


def test_the_help_of_load_shows_a_row_and_a_tombstone_that_load_takes(lastword: CommandLine, topic: str) -> None:
    described = " ".join(lastword("load", "--help").split())
    row, tombstone = '{"key": "user-1", "value": {"age": 25}}', '{"key": "user-1", "tombstone": true}'
    assert row in described
    assert tombstone in described
    lastword("load", topic, "-", given=f"{row}\n")
    assert lastword("get", topic, "user-1") == '{"age": 25}\n'
    lastword("load", topic, "-", given=f"{tombstone}\n")
    assert lastword("count", topic) == "0\n"


def test_a_bad_line_is_reported_with_its_number_and_what_was_acknowledged_before_it(
    lastword: CommandLine, topic: str
) -> None:
    done = lastword.run("load", topic, "-", given="a:1\nb:2\nc:oops\nd:4\n")
    assert done.returncode == 2
    assert done.stderr.startswith("lastword: line 3: 'oops' is not JSON")
    assert "the 2 records before it were acknowledged" in done.stderr
    assert [row["key"] for row in jsons(lastword("scan", topic, "--json"))] == ["a", "b"]


def test_dump_and_load_into_a_new_topic_give_the_same_table(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    copy = f"{topic}-copy"
    create_topic(connection, copy, partitions=2)
    odd = ["a", "key with spaces", "schlüssel", '"quoted"', "new\nline"]
    rows = "".join(json.dumps({"key": key, "value": {"n": 1.50, "of": key}}) + "\n" for key in odd)
    raw = '{"key_base64":"/wA=","value_base64":"AAECAw=="}\n{"key":"not-json","value_base64":"e2JhZA=="}\n'
    lastword("load", topic, "-", given=rows + raw + '{"key":"gone","value":1}\n{"key":"gone","tombstone":true}\n')
    dumped = lastword("dump", topic)
    lastword("load", copy, "-", given=dumped)

    def table(name: str) -> dict[bytes, bytes | None]:
        records = (record for batch in read_log(connection, name) for record in batch)
        return {key: record.value for key, record in fold(records).items()}

    assert table(copy) == table(topic)
    assert len(table(copy)) == len(odd) + 2
    lastword("topic", "delete", copy)


def test_records_shows_tombstones_and_gaps(lastword: CommandLine, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"segment.ms": "10000"})
    lastword("load", topic_name, "-", given="a:1\na:2\nb:3\n")
    lastword("delete", topic_name, "b")
    shown = lastword("records", topic_name).splitlines()
    assert [line.split()[:2] for line in shown[:4]] == [["0", "0"], ["0", "1"], ["0", "2"], ["0", "3"]]
    assert shown[3].endswith("b  <tombstone>")
    assert shown[4] == "4 records"
    lastword("topic", "compact", topic_name)
    compacted = lastword("records", topic_name).splitlines()
    assert compacted[0].split()[:4] == ["0", "0", "--", "gap:"]
    assert compacted[1].split()[:2] == ["0", "1"]
    assert compacted[2].split()[:4] == ["0", "2", "--", "gap:"]
    assert compacted[3].endswith("b  <tombstone>")


def test_a_position_limits_where_records_start(lastword: CommandLine, connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    lastword("load", topic_name, "-", given="a:1\na:2\nb:3\n")
    assert [row["offset"] for row in jsons(lastword("records", topic_name, "--from", "0:1", "--json"))] == [1, 2]
    assert [row["offset"] for row in jsons(lastword("records", topic_name, "--limit", "1", "--json"))] == [0]


def test_watch_shows_puts_and_deletes_as_they_come(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    lastword("put", topic_name, "before", "0")
    watcher = lastword.start("watch", topic_name, "--from", "0:1", "--limit", "2", "--json", stdout=subprocess.PIPE)
    lastword("put", topic_name, "a", "1")
    lastword("delete", topic_name, "a")
    eventually(lambda: watcher.poll() is not None)
    assert watcher.returncode == 0
    first, second = jsons(watcher.communicate()[0])
    assert (first["key"], first["value"], first["offset"]) == ("a", 1, 1)
    assert (second["key"], second["tombstone"], second["offset"]) == ("a", True, 2)


def test_a_schema_registry_frame_is_shown_with_its_id_and_not_as_garbage(lastword: CommandLine, topic: str) -> None:
    lastword("put", topic, "a", "AAAAACphYmM=", "--value-codec", "bytes")
    assert "schema registry frame, schema id 42, 3 bytes" in lastword("scan", topic)
    [row] = jsons(lastword("scan", topic, "--json"))
    assert row["value_base64"] == "AAAAACphYmM="
    assert "schema id 42" in str(row["decode_error"])


def test_a_key_that_another_partitioner_placed_is_found_in_all_partitions(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    elsewhere = (partition_of(b"stray", 3) + 1) % 3
    producer = connection.producer()
    producer.produce(topic, key=b"stray", value=b"1", partition=elsewhere)
    producer.flush(10)
    assert "--all-partitions" in lastword.run("get", topic, "stray").stderr
    assert lastword("get", topic, "stray", "--all-partitions") == "1\n"
    described = lastword.run("topic", "describe", topic, "--scan")
    assert "1 keys are not where Java's partitioner (murmur2) puts them" in described.stderr


def test_a_key_that_its_codec_cannot_read_back_is_written_by_nobody(
    lastword: CommandLine, connection: Connection, topic: str
) -> None:
    put = lastword.run("put", topic, "1e999", "1", "--key-codec", "json")
    load = lastword.run("load", topic, "-", given='{"key":"a","value":1}\n{"key":"\\u0000abcd","value":2}\n')
    assert (put.returncode, load.returncode) == (2, 2)
    assert put.stderr.startswith("lastword: the json codec can't read this key back (")
    assert "line 2: the string codec can't read this key back (schema registry frame" in load.stderr
    with Table(connection, topic) as table, Table(connection, topic, key="json") as by_json:
        for write in (
            lambda: table.put("\0abcd", 1),
            lambda: table.put_many([("\0abcd", 1)]),
            lambda: by_json.put({1: "a"}, 1),
        ):
            with pytest.raises(LastwordError, match=r"read (this key )?back|comes back from JSON as"):
                write()
        assert [row.key for row in table.scan()] == ["a"]
        # One that another program wrote can be removed.
        table.delete("\0abcd")


def test_int_keys_and_values_are_javas_longs(lastword: CommandLine, connection: Connection, topic: str) -> None:
    lastword("put", topic, "7", "-1", "--key-codec", "int", "--value-codec", "int")
    [[record]] = list(read_log(connection, topic))
    assert record.key == (7).to_bytes(8, "big")
    assert record.value == b"\xff" * 8
    assert lastword("get", topic, "7", "--key-codec", "int", "--value-codec", "int") == "-1\n"


def test_a_position_that_names_some_partitions_shows_only_those(lastword: CommandLine, topic: str) -> None:
    lastword("load", topic, "-", given="".join(f"key-{n}:{n}\n" for n in range(30)))
    assert {row["partition"] for row in jsons(lastword("records", topic, "--from", "1:0", "--json"))} == {1}


def test_a_value_that_the_codec_can_not_read_is_an_error_of_get_and_not_data(lastword: CommandLine, topic: str) -> None:
    lastword("put", topic, "theme", "dark", "--value-codec", "string")
    done = lastword.run("get", topic, "theme")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not JSON" in done.stderr
    assert "--value-codec string" in done.stderr
    assert lastword("get", topic, "theme", "--value-codec", "string") == "dark\n"


def test_small_rows_fit_into_a_topic_that_takes_small_batches_and_a_large_one_is_named(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1, settings={"max.message.bytes": "20000"})
    rows = "".join(json.dumps({"key": f"key-{n}", "value": os.urandom(60).hex()}) + "\n" for n in range(500))
    assert lastword("load", topic_name, "-", given=rows) == "500 records acknowledged\n"
    large = json.dumps({"key": "large", "value": os.urandom(30_000).hex()})
    refused = lastword.run("load", topic_name, "-", given=large)
    assert refused.returncode == 2
    assert "key b'large', 60002 bytes" in refused.stderr
    assert "max.message.bytes" in refused.stderr


def test_a_line_of_a_gigabyte_is_refused_before_it_is_in_memory(
    lastword: CommandLine, topic: str, tmp_path: Path
) -> None:
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.write(b'{"key":"a","value":1}\n{"key":"b","value":"')
        file.truncate(2**30)
    load = lastword.start("load", topic, str(huge), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert load.stderr is not None
    assert load.stdout is not None
    with load.stdout, load.stderr:
        said = load.stderr.read()
        _, status, used = os.wait4(load.pid, 0)
    load.returncode = os.waitstatus_to_exitcode(status)
    assert load.returncode == 2
    assert said.startswith(
        "lastword: line 2: longer than 134,217,728 bytes: a row is one line, and every line ends in "
    )
    assert said.endswith("; the 1 records before it were acknowledged\n")
    # In KiB, but for macOS, which counts bytes.
    assert used.ru_maxrss < (600 * 1024 * 1024 if sys.platform == "darwin" else 600 * 1024)


def obey_interrupts() -> None:
    """As from a terminal: what runs in the background of a shell inherits that they are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_load_says_what_was_acknowledged_and_a_watch_where_to_go_on(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    create_topic(connection, topic_name, partitions=1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    load = lastword.start("load", topic_name, "-", preexec_fn=obey_interrupts, **pipes)
    watch = lastword.start("watch", topic_name, "--from", "0:0", preexec_fn=obey_interrupts, **pipes)
    assert load.stdin is not None
    assert watch.stdout is not None
    load.stdin.write("a:1\nb:2\n")
    load.stdin.flush()
    eventually(lambda: log_bounds(connection, topic_name)[1] == {0: 2})
    load.send_signal(signal.SIGINT)
    # Its standard input stays open until it has ended: it must not end for want of lines.
    load.wait(timeout=30)
    assert "interrupted; the 2 records before it were acknowledged" in load.communicate()[1]
    assert load.returncode == 130
    assert [watch.stdout.readline().split()[-2:] for _ in range(2)] == [["a", "1"], ["b", "2"]]
    watch.send_signal(signal.SIGINT)
    assert "continue from here with  --from 0:2" in watch.communicate(timeout=120)[1]
    assert watch.returncode == 130


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_rows(lastword: CommandLine, topic: str) -> None:
    lastword("load", topic, "-", "--value-codec", "string", given="\ufeffa:1\r\nb:2\r\n")
    rows = jsons(lastword("scan", topic, "--json", "--value-codec", "string"))
    assert [(row["key"], row["value"]) for row in rows] == [("a", "1"), ("b", "2")]


def test_a_value_nested_too_deep_and_a_time_past_the_calendar_do_not_stop_a_scan(
    lastword: CommandLine, connection: Connection, topic_name: str
) -> None:
    far = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    create_topic(connection, topic_name, partitions=1, settings=far)
    producer = connection.producer()
    producer.produce(topic_name, key=b"deep", value=b"[" * 20_000 + b"]" * 20_000)
    producer.produce(topic_name, key=b"late", value=b"1", timestamp=10**18)
    assert producer.flush(10) == 0
    assert "<not JSON: " in lastword("scan", topic_name)
    assert "1000000000000000000" in lastword("records", topic_name)
    assert len(jsons(lastword("dump", topic_name))) == 2


@pytest.mark.parametrize("closing", [">&-", "2>&-", "> /dev/full"])
def test_closed_and_full_streams_give_no_stack_trace(lastword: CommandLine, topic: str, closing: str) -> None:
    command = f"'{lastword.program}' count {topic} {closing}"
    done = subprocess.run(
        ["bash", "-c", command], env=lastword.environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == (1 if "full" in closing else 0)
    assert "Traceback" not in done.stderr
    assert done.stdout == ("0\n" if closing == "2>&-" else "")


def test_a_closed_pipe_ends_a_dump_quietly(lastword: CommandLine, topic: str) -> None:
    lastword("load", topic, "-", given="".join(f"key-{n}:{n}\n" for n in range(20000)))
    dump = lastword.start("dump", topic, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert dump.stdout is not None
    assert dump.stdout.readline().startswith('{"key":"key-')
    dump.stdout.close()
    assert dump.stderr is not None
    assert dump.stderr.read() == ""
    assert dump.wait(timeout=30) == 0
    dump.stderr.close()


def test_settings_of_the_law_can_not_be_changed_by_a_file(lastword: CommandLine, topic: str) -> None:
    config = lastword.home.parent / "client.properties"
    config.write_text("# mine\npartitioner=random\n")
    done = lastword.run("put", topic, "a", "1", "--config", str(config))
    assert done.returncode == 2
    assert "lastword always uses partitioner=murmur2_random" in done.stderr


def test_a_bad_settings_file_is_named_with_its_line_and_without_its_text(lastword: CommandLine, topic: str) -> None:
    config = lastword.home.parent / "client.properties"
    config.write_text("client.id=x\nhunter2\n")
    done = lastword.run("count", topic, "--config", str(config))
    assert done.returncode == 2
    assert f"{config}:2" in done.stderr
    assert "hunter2" not in done.stderr


def test_an_unknown_client_setting_is_exit_code_2(lastword: CommandLine, topic: str) -> None:
    config = lastword.home.parent / "client.properties"
    config.write_text("no.such.setting=1\n")
    done = lastword.run("count", topic, "--config", str(config))
    assert done.returncode == 2
    assert "no.such.setting" in done.stderr
    assert "Traceback" not in done.stderr
