"""`lastword export`: a table at a position as files."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import fold_topic, log_bounds
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine
from support.in_process import InProcess
from support.waiting import eventually

MARKER = "_lastword.json"


@pytest.fixture
def people(users: Table) -> Table:
    """Two live people and a deleted one."""
    users.put("ann", {"name": "Ann", "age": 31, "home": {"city": "Oslo"}})
    users.put("bob", {"name": 'Bob "B",\nJr.', "age": None})
    users.put("dan", {"name": "Dan", "age": 50})
    users.delete("dan")
    return users


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*"))


def parquet_rows(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        row for part in parts(folder) for row in pyarrow.parquet.read_table(part).to_pylist()
    ]
    return sorted(rows, key=lambda row: str(row["key"]))


def marker(folder: Path) -> dict[str, object]:
    told: dict[str, object] = json.loads((folder / MARKER).read_text())
    return told


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_parquet_has_the_columns_and_the_position_beside_them(
    verb: InProcess, connection: Connection, people: Table, tmp_path: Path
) -> None:
    printed = verb("export", people.topic, str(tmp_path / "out"), "--format", "parquet")
    position = log_bounds(connection, people.topic)[1]
    assert printed == f"2 rows of {people.topic} at {position} are in {tmp_path / 'out'} (parquet)\n"
    scanned = {row["key"]: row for row in map(json.loads, verb("scan", people.topic, "--json").splitlines())}
    assert parquet_rows(tmp_path / "out") == [
        {
            "key": key,
            "age": age,
            "home": home,
            "name": name,
            "partition": scanned[key]["partition"],
            "offset": scanned[key]["offset"],
            "timestamp": datetime.fromtimestamp(scanned[key]["timestamp"] / 1000, UTC),
            "headers": None,
            "decode_error": None,
        }
        for key, age, home, name in [("ann", 31, {"city": "Oslo"}, "Ann"), ("bob", None, None, 'Bob "B",\nJr.')]
    ]
    told = marker(tmp_path / "out")
    exported_at = datetime.fromisoformat(str(told.pop("exported_at")))
    assert abs((datetime.now(UTC) - exported_at).total_seconds()) < 600
    described = json.loads(verb("topic", "describe", people.topic, "--json"))
    assert told == {
        "topic": people.topic,
        "topic_id": described["topic_id"],
        "cluster": connection.reach().cluster_id,
        "position": str(position),
        "rows": 2,
        "unreadable": 0,
        "key_codec": "string",
        "value_codec": "json",
        "format": "parquet",
    }


def test_a_past_position_is_exported_as_it_was(verb: InProcess, people: Table, tmp_path: Path) -> None:
    ack = people.put("ann", {"name": "Anna", "age": 32})
    before = {**dict.fromkeys(range(3), 0), ack.partition: ack.offset}
    at = ",".join(f"{p}:{offset}" for p, offset in before.items())
    words = (
        "export",
        people.topic,
        str(tmp_path / "out"),
        "--format",
        "parquet",
        "--at",
        at,
        "--schema",
        "name STRING",
    )
    verb(*words, "--json")
    assert marker(tmp_path / "out")["position"] == at
    assert [row["name"] for row in parquet_rows(tmp_path / "out") if row["key"] == "ann"] == ["Ann"]


def test_raw_keeps_the_value_in_one_column(verb: InProcess, people: Table, tmp_path: Path) -> None:
    verb("export", people.topic, str(tmp_path / "out"), "--format", "parquet", "--raw")
    rows = parquet_rows(tmp_path / "out")
    assert list(rows[0]) == ["key", "value", "partition", "offset", "timestamp", "headers", "decode_error"]
    assert json.loads(str(rows[0]["value"])) == {"name": "Ann", "age": 31, "home": {"city": "Oslo"}}


def test_csv_is_read_back_as_it_was(verb: InProcess, people: Table, tmp_path: Path) -> None:
    people.put("cat", {"name": "", "age": 3})
    people.put("eve", {"name": " \\ eve ", "age": 4})
    verb("export", people.topic, str(tmp_path / "out"), "--format", "csv")
    rows = []
    for part in parts(tmp_path / "out"):
        with part.open(newline="") as file:
            rows += list(csv.DictReader(file, strict=True))
    rows.sort(key=lambda row: row["key"])
    assert [(row["key"], row["name"], row["age"], row["home"], row["decode_error"]) for row in rows] == [
        ("ann", "Ann", "31", '{"city":"Oslo"}', ""),
        ("bob", 'Bob "B",\nJr.', "", "", ""),
        ("cat", "", "3", "", ""),
        ("eve", " \\ eve ", "4", "", ""),
    ]
    assert datetime.fromisoformat(rows[0]["timestamp"]).tzinfo is not None


@pytest.mark.quick
def test_json_lines_are_loaded_back_byte_for_byte(
    verb: InProcess, connection: Connection, people: Table, tmp_path: Path
) -> None:
    with Writer(connection, people.topic) as writer:
        writer.write(b"broken", b"\xff not JSON")
        writer.write(b"\xfe\xff", b"1")
        writer.write(b"null", b"null")
        writer.write(b"exact", b'{"b": 1.10, "a": 123456789012345678901234567890}')
        writer.write(b"named", b'{"decode_error":"a field of its own"}')
        writer.write(b"headed", b"1", (("by", b"me"), ("raw", b"\xff"), ("by", None)))
    done = verb.run("export", people.topic, str(tmp_path / "out"), "--format", "jsonl")
    assert (done.code, done.stderr) == (
        0,
        "lastword: 2 of the rows could not be decoded: their decode_error says why\n",
    )
    assert (marker(tmp_path / "out")["rows"], marker(tmp_path / "out")["unreadable"]) == (8, 2)
    (tmp_path / "all.jsonl").write_bytes(b"".join(part.read_bytes() for part in parts(tmp_path / "out")))
    copy = f"{people.topic}-copy"
    create_topic(connection, copy, partitions=3)
    assert verb("load", copy, str(tmp_path / "all.jsonl"), "--format", "jsonl") == "8 records acknowledged\n"
    there, here = fold_topic(connection, copy).rows, fold_topic(connection, people.topic).rows
    assert {key: (row.value, row.headers) for key, row in there.items()} == {
        key: (row.value, row.headers) for key, row in here.items()
    }
    verb("topic", "delete", copy)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_headers_are_exported_with_their_rows(verb: InProcess, people: Table, tmp_path: Path, form: str) -> None:
    people.put("ann", {"name": "Ann"}, headers=[("by", "me"), ("by", None), ("raw", b"\xff")])
    verb("export", people.topic, str(tmp_path / "out"), "--format", form, "--schema", "name STRING")
    if form == "parquet":
        found = {row["key"]: row["headers"] for row in parquet_rows(tmp_path / "out")}
        assert found == {
            "ann": [{"key": "by", "value": b"me"}, {"key": "by", "value": None}, {"key": "raw", "value": b"\xff"}],
            "bob": None,
        }
    else:
        lines = [list(csv.DictReader(part.read_text().splitlines())) for part in parts(tmp_path / "out")]
        found = {row["key"]: row["headers"] for rows in lines for row in rows}
        # Bytes are base64, as everywhere in CSV.
        assert found == {
            "ann": '[{"key":"by","value":"bWU="},{"key":"by","value":null},{"key":"raw","value":"/w=="}]',
            "bob": "",
        }


def test_what_a_codec_cannot_read_is_exported_with_the_reason(
    verb: InProcess, connection: Connection, people: Table, tmp_path: Path
) -> None:
    with Writer(connection, people.topic) as writer:
        writer.write(b"broken", b"not JSON")
    done = verb.run("export", people.topic, str(tmp_path / "out"), "--format", "parquet", "--json")
    assert json.loads(done.stdout)["unreadable"] == 1
    [broken] = [row for row in parquet_rows(tmp_path / "out") if row["key"] == "broken"]
    assert "not JSON" in str(broken["decode_error"])


def test_what_is_there_is_replaced_only_when_asked_and_then_whole(
    verb: InProcess, people: Table, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    verb("export", people.topic, str(out), "--format", "parquet", "--schema", "name STRING")
    before = files(out)
    refused = verb.run("export", people.topic, str(out), "--format", "jsonl")
    assert (refused.code, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"lastword: {out} is not empty: give another folder, or replace what is there with --overwrite\n"
    )
    assert files(out) == before
    people.delete("bob")
    verb("export", people.topic, str(out), "--format", "jsonl", "--overwrite")
    assert [json.loads(line)["key"] for part in parts(out) for line in part.read_text().splitlines()] == ["ann"]
    assert {part.suffix for part in parts(out)} == {".txt"}
    assert marker(out)["rows"] == 1
    assert [child.name for child in tmp_path.iterdir() if child.name.startswith((".", "out"))] == ["out"]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("{topic}", "{home}", "--format", "csv", "--overwrite"), 2, "holds mine.txt, which no export wrote"),
        (("{topic}", "{home}/mine.txt", "--format", "csv"), 2, "is a file: an export is a folder"),
        (("no-such", "{home}/new", "--format", "csv"), 1, "no topic 'no-such'"),
        (("{topic}", "{home}/new", "--format", "jsonl", "--schema", "a INT"), 2, "--schema is for columns"),
        (("{topic}", "{home}/new", "--format", "csv", "--raw", "--schema", "a INT"), 2, "--schema is for columns"),
        (("{topic}", "{home}/new", "--format", "csv", "--schema", "a IMT"), 2, "schema 'a IMT'"),
        (("{topic}", "{home}/new", "--format", "orc"), 2, "invalid choice: 'orc'"),
        (("{topic}", "{home}/new", "--format", "csv", "--at", "soon"), 2, "'soon' is neither a position"),
        (("{topic}", "nofs://x/y", "--format", "csv"), 1, 'No FileSystem for scheme "nofs"'),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(
    verb: InProcess, users: Table, tmp_path: Path, words: tuple[str, ...], code: int, *, complaint: str
) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    (home / "mine.txt").write_text("mine")
    done = verb.run("export", *[word.format(topic=users.topic, home=home) for word in words])
    assert (done.code, done.stdout) == (code, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert files(home) == {"mine.txt": b"mine"}


def test_delta_is_overwritten_in_one_commit_that_says_its_position(
    verb: InProcess, spark: SparkSession, people: Table, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("export", people.topic, str(out), "--format", "delta")
    first = json.loads(verb(*words, "--json"))
    people.put("ann", {"name": "Anna", "age": 32, "nick": "A"})
    second = json.loads(verb(*words, "--json", "--overwrite"))
    assert marker(out) == second
    assert first["position"] != second["position"]
    commits = [
        next(json.loads(line)["commitInfo"] for line in log.read_text().splitlines() if "commitInfo" in line)
        for log in sorted((out / "_delta_log").glob("*.json"))
    ]
    told = [json.loads(commit["userMetadata"]) for commit in commits]
    assert [(each["topic"], each["position"]) for each in told] == [
        (people.topic, first["position"]),
        (people.topic, second["position"]),
    ]
    reader = spark.read.format("delta")
    now = {row["key"]: row["name"] for row in reader.load(str(out)).collect()}
    then = {row["key"]: row["name"] for row in reader.option("versionAsOf", 0).load(str(out)).collect()}
    assert (now["ann"], then["ann"], sorted(now)) == ("Anna", "Ann", ["ann", "bob"])


@pytest.fixture
def remote(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A URL that is no local path to lastword, and a folder of this machine behind it."""
    (tmp_path / "store").mkdir()
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.tests.link./store", (tmp_path / "store").as_uri())
    yield "viewfs://tests/store"
    conf.unset("fs.viewfs.mounttable.tests.link./store")


def test_a_url_is_written_by_spark_and_marked_last(verb: InProcess, people: Table, remote: str, tmp_path: Path) -> None:
    words = ("export", people.topic, f"{remote}/out", "--format", "parquet", "--schema", "name STRING")
    verb(*words)
    out = tmp_path / "store" / "out"
    assert marker(out)["rows"] == len(parquet_rows(out)) == 2
    refused = verb.run(*words)
    assert (refused.code, "is not empty" in refused.stderr) == (1, True)
    people.delete("bob")
    verb(*words, "--overwrite")
    assert marker(out)["rows"] == len(parquet_rows(out)) == 1


def test_a_killed_export_leaves_the_old_one_and_the_next_cleans_up(
    verb: InProcess, lastword: CommandLine, people: Table, tmp_path: Path
) -> None:
    out = tmp_path / "exports" / "out"
    words = ("export", people.topic, str(out), "--format", "parquet", "--overwrite")
    verb(*words)
    before = files(out)
    people.delete("bob")
    with lastword.start(*words) as process:
        # It is written now, and whole only some time later.
        eventually(lambda: any(out.parent.glob(".out.exporting-*")), within_s=300)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert files(out) == before
    assert [child.name.split("-")[0] for child in sorted(out.parent.iterdir())] == [".out.exporting", "out"]
    verb(*words)
    assert [row["key"] for row in parquet_rows(out)] == ["ann"]
    assert [child.name for child in out.parent.iterdir()] == ["out"]
