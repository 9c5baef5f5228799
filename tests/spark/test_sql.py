"""`lastword sql`: topics as tables of Spark SQL."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pyarrow
import pytest
from pyspark.sql import SparkSession

from lastword.api.table import Table
from lastword.core.errors import BadInput, ClusterUnreachable
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.spark.query.rows_as_text import json_lines
from lastword.spark.query.sql import Reading, answer
from support.command_line import CommandLine
from support.in_process import InProcess

MakeTopic = Callable[[str], Table]


@pytest.fixture(scope="module")
def made(connection: Connection) -> Iterator[MakeTopic]:
    """Makes a topic, which is gone after the tests of this file."""
    with ExitStack() as stack:

        def make(name: str) -> Table:
            create_topic(connection, name, partitions=2)
            stack.callback(delete_topic, connection, name)
            return stack.enter_context(Table(connection, name))

        yield make


@pytest.fixture(scope="module")
def people(made: MakeTopic) -> str:
    """Three live people and a deleted one, in a topic whose name needs backquotes."""
    table = made(f"people-{uuid4().hex[:8]}.v1")
    table.put("ann", {"name": "Ann", "age": 20, "tags": ["a", "b"], "home": {"city": "Oslo"}})
    table.put("ann", {"name": "Ann", "age": 31, "tags": ["a", "b"], "home": {"city": "Oslo"}})
    table.put("bob", {"name": 'Bob "B", Jr.', "age": 31, "tags": [], "home": None})
    table.put("cat", {"name": "", "age": None})
    table.put("dan", {"name": "Dan", "age": 50})
    table.delete("dan")
    return table.topic


@pytest.mark.quick
def test_a_table_has_one_row_for_each_live_key(verb: InProcess, people: str) -> None:
    printed = verb(
        "sql", f"SELECT age, count(*) AS people, min(name) AS first FROM `{people}` GROUP BY age ORDER BY age"
    )
    assert printed == " age  people  first\nNULL       1\n  31       2  Ann\n2 rows\n"


def test_a_table_has_its_columns_in_this_order(verb: InProcess, people: str) -> None:
    described = verb("sql", f"DESCRIBE `{people}`", "--format", "csv")
    assert [line.split(",")[0] for line in described.splitlines()[1:]] == [
        "key",
        "age",
        "home",
        "name",
        "tags",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "decode_error",
    ]


def test_json_lines_keep_what_is_nested_and_give_times_as_every_verb_does(verb: InProcess, people: str) -> None:
    query = f"SELECT key, age, tags, home, partition, offset, timestamp FROM `{people}` ORDER BY key"
    rows = [json.loads(line) for line in verb("sql", query, "--json").splitlines()]
    scanned = [json.loads(line) for line in verb("scan", people, "--json").splitlines()]
    assert [[row[name] for name in ("key", "partition", "offset", "timestamp")] for row in rows] == [
        [row[name] for name in ("key", "partition", "offset", "timestamp")] for row in scanned
    ]
    assert [(row["age"], row["tags"], row["home"]) for row in rows] == [
        (31, ["a", "b"], {"city": "Oslo"}),
        (31, [], None),
        (None, None, None),
    ]


def test_times_are_integer_ms_also_inside_of_what_is_nested(verb: InProcess) -> None:
    moment = "timestamp '2026-03-01 12:00:00.123456'"
    query = f"SELECT array({moment}) AS a, map('k', named_struct('t', {moment})) AS m, X'00FF' AS b, 1.50 AS d"
    assert verb("sql", query, "--json") == '{"a":[1772366400123],"m":{"k":{"t":1772366400123}},"b":"AP8=","d":1.50}\n'


def test_csv_is_read_back_as_it_was(verb: InProcess, people: str) -> None:
    printed = verb("sql", f"SELECT key, name, age, tags FROM `{people}` ORDER BY key", "--format", "csv")
    assert list(csv.reader(io.StringIO(printed, newline=""), strict=True)) == [
        ["key", "name", "age", "tags"],
        ["ann", "Ann", "31", '["a","b"]'],
        ["bob", 'Bob "B", Jr.', "31", "[]"],
        ["cat", "", "", ""],
    ]
    # The empty text is not null.
    assert printed.endswith('\r\ncat,"",,\r\n')


def test_two_columns_of_one_name_are_refused_only_in_json(verb: InProcess) -> None:
    assert verb("sql", "SELECT 1 AS a, 2 AS a", "--format", "csv") == "a,a\r\n1,2\r\n"
    done = verb.run("sql", "SELECT 1 AS a, 2 AS a", "--json")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == "lastword: the query: 2 columns are named a, and JSON takes one: name them with AS\n"


def test_a_table_shows_some_rows_and_says_when_there_are_more(verb: InProcess, people: str) -> None:
    query = f"SELECT key FROM `{people}` ORDER BY key"
    assert verb("sql", query, "--limit", "2") == (
        "key\nann\nbob\nthe first 2 rows, and there are more: raise --limit, or take all with --json\n"
    )
    assert verb("sql", query, "--limit", "3") == "key\nann\nbob\ncat\n3 rows\n"
    assert verb("sql", query, "--limit", "1", "--json") == '{"key":"ann"}\n'


@pytest.mark.quick
def test_only_topics_that_the_query_names_are_read(
    spark: SparkSession, connection: Connection, made: MakeTopic, people: str
) -> None:
    plain = f"cities_{uuid4().hex[:8]}"
    made(plain).put("Oslo", {"country": "Norway"})
    unread = f"unread_{uuid4().hex[:8]}"
    made(unread)
    query = f"""
        WITH {unread} AS (SELECT key, home.city AS city FROM `{people}`)
        SELECT u.key, c.country FROM {unread} AS u JOIN {plain} AS c ON c.key = u.city
        WHERE u.key IN (SELECT key FROM `{people}`)"""
    answered = answer(spark.newSession(), query)
    assert set(answered.positions) == {people, plain}
    assert [tuple(row) for row in answered.rows.collect()] == [("ann", "Norway")]


def test_the_answer_is_of_the_position_that_was_captured(spark: SparkSession, made: MakeTopic) -> None:
    table = made(f"grows_{uuid4().hex[:8]}")
    acks = [table.put(f"k{number}", {"n": number}) for number in range(4)]
    answered = answer(spark.newSession(), f"SELECT count(*) FROM {table.topic}")
    position = answered.positions[table.topic]
    assert all(position.covers(ack.position) for ack in acks)
    table.put("later", {"n": 9})
    assert answered.rows.collect() == [(4,)]


def test_a_past_position_and_a_past_moment_are_answered(verb: InProcess, made: MakeTopic) -> None:
    table = made(f"past_{uuid4().hex[:8]}")
    first = table.put("a", {"n": 1})
    second = table.put("a", {"n": 2})
    query = f"SELECT n FROM {table.topic}"
    assert verb("sql", query, "--json") == '{"n":2}\n'
    assert verb("sql", query, "--json", "--at", str(first.position)) == '{"n":1}\n'
    assert verb("sql", f"SELECT count(*) AS n FROM {table.topic}", "--json", "--at", "2000-01-01") == '{"n":0}\n'
    done = verb.run("sql", query, "--at", f"{second.partition}:99")
    assert (done.code, done.stdout) == (2, "")
    assert f"the position {second.partition}:99 is not there yet" in done.stderr


def test_at_and_a_bare_schema_are_for_a_query_over_one_topic(verb: InProcess, made: MakeTopic, people: str) -> None:
    other = made(f"other_{uuid4().hex[:8]}").topic
    query = f"SELECT 1 FROM `{people}`, {other}"
    for words in (("--at", "0:0,1:0"), ("--schema", "name STRING")):
        done = verb.run("sql", query, *words)
        assert (done.code, done.stdout) == (2, "")
        assert f"{words[0]}" in done.stderr
        assert " is for a query over one topic, and this one reads " in done.stderr
    assert verb("sql", query, "--json", "--schema", f"{people}=name STRING", "--schema", f"{other}=n INT") == ""


def test_a_declared_schema_gives_the_columns(verb: InProcess, people: str) -> None:
    query = f"SELECT * EXCEPT (partition, offset, timestamp, headers) FROM `{people}` ORDER BY key"
    printed = verb("sql", query, "--schema", "age DOUBLE, nick STRING", "--json")
    assert printed.splitlines()[0] == '{"key":"ann","age":31.0,"nick":null,"decode_error":null}'
    done = verb.run("sql", query, "--schema", "age DUBLE")
    assert (done.code, done.stdout) == (2, "")
    assert "schema 'age DUBLE'" in done.stderr
    done = verb.run("sql", query, "--schema", "elsewhere=age INT")
    assert (done.code, "the query reads no topic of that name" in done.stderr) == (2, True)


def test_what_a_codec_cannot_read_is_a_row_with_the_reason(
    verb: InProcess, connection: Connection, made: MakeTopic
) -> None:
    topic = made(f"broken_{uuid4().hex[:8]}").topic
    with Table(connection, topic, value="string") as text:
        text.put("a", '{"n": 1}')
        text.put("b", "not JSON")
    rows = verb("sql", f"SELECT key, n, decode_error FROM {topic} ORDER BY key", "--json").splitlines()
    assert rows[0] == '{"key":"a","n":1,"decode_error":null}'
    assert "not JSON" in json.loads(rows[1])["decode_error"]
    assert verb("sql", f"SELECT value FROM {topic} ORDER BY key", "--value-codec", "string", "--json") == (
        '{"value":"{\\"n\\": 1}"}\n{"value":"not JSON"}\n'
    )


def test_a_name_in_another_case_is_found_unless_it_may_be_two(verb: InProcess, made: MakeTopic) -> None:
    name = f"Cased_{uuid4().hex[:8]}"
    made(name).put("a", {"n": 1})
    assert verb("sql", f"SELECT n FROM {name.upper()}", "--json") == '{"n":1}\n'
    made(name.lower()).put("a", {"n": 2})
    assert verb("sql", f"SELECT n FROM {name}", "--json") == '{"n":1}\n'
    assert verb("sql", f"SELECT n FROM {name.lower()}", "--json") == '{"n":2}\n'
    both = verb.run("sql", f"SELECT * FROM {name} WHERE n IN (SELECT n FROM {name.lower()})")
    assert (both.code, "differ only in case, which Spark does not tell apart" in both.stderr) == (2, True)
    neither = verb.run("sql", f"SELECT * FROM {name.upper()}")
    assert (neither.code, f"may be any of {name}, {name.lower()}" in neither.stderr) == (2, True)


def test_a_name_that_is_no_topic_is_answered_with_the_nearest(verb: InProcess, people: str) -> None:
    for query in ("SELECT * FROM `{}`", "EXPLAIN SELECT * FROM `{}`", "DESCRIBE `{}`"):
        done = verb.run("sql", query.format(people[:-1]))
        assert (done.code, done.stdout) == (1, "")
        assert done.stderr.startswith(f"lastword: no topic '{people[:-1]}' at ")
        assert done.stderr.endswith(f": did you mean '{people}'?\n")


def test_a_name_with_a_dot_wants_backquotes(verb: InProcess, made: MakeTopic) -> None:
    name = f"a.b{uuid4().hex[:8]}"
    made(name)
    done = verb.run("sql", f"SELECT * FROM {name}")
    assert (done.code, done.stderr) == (
        2,
        f"lastword: the query: {name} has a dot in it: write it in backquotes, `{name}`\n",
    )


def test_show_tables_lists_the_topics_and_explain_shows_the_plan(verb: InProcess, people: str) -> None:
    listed = verb("sql", "SHOW TABLES LIKE 'PEOPLE*|nothing'", "--format", "csv").splitlines()
    assert listed[0] == "table"
    assert people in listed
    assert all(name.startswith("people") for name in listed[1:])
    [plan] = [
        json.loads(line)["plan"] for line in verb("sql", f"EXPLAIN SELECT * FROM `{people}`", "--json").splitlines()
    ]
    assert plan.startswith("== Physical Plan ==")


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE x",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO x SELECT 1",
        "WITH c AS (SELECT 1) INSERT INTO x SELECT * FROM c",
        "FROM VALUES (1) INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1",
        "EXPLAIN INSERT INTO x SELECT 1",
        "CREATE TEMPORARY VIEW x AS SELECT 1",
        "SET spark.sql.ansi.enabled=false",
        "SELECT TRANSFORM(1) USING 'cat'",
        "BEGIN SELECT 1; END",
        "EXECUTE IMMEDIATE 'DROP TABLE x'",
        "CALL x()",
        "ADD JAR 'x.jar'",
        "/* SELECT */ CACHE TABLE x",
        "VACUUM delta.`/tmp/x`",
    ],
)
def test_what_does_not_only_read_is_refused(verb: InProcess, query: str) -> None:
    done = verb.run("sql", query)
    assert (done.code, done.stdout) == (2, "")
    assert " is refused, because a query only reads: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELEC 1", "the query, line 1, column 1: Syntax error at or near 'SELEC'. [PARSE_SYNTAX_ERROR]"),
        ("", "the query, line 1, column 1: Syntax error, unexpected empty statement. [PARSE_EMPTY_STATEMENT]"),
        ("SELECT 1,\n  agee FROM VALUES (1) AS t(age)", "the query, line 2, column 3: A column, variable, "),
        ("SELECT cast(concat('x', id) AS INT) FROM range(3)", "the query, line 1, column 8: The value 'x"),
        (
            "SELECT * FROM my-topic",
            "the query, line 1, column 17: The unquoted identifier my-topic is invalid and must",
        ),
    ],
)
def test_a_mistake_in_a_query_is_one_line_with_its_place(verb: InProcess, query: str, complaint: str) -> None:
    for form in ("table", "jsonl"):
        done = verb.run("sql", query, "--format", form)
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"lastword: {complaint}")
        assert (done.stderr[-2:], done.stderr.count("\n")) == ("]\n", 1)


def test_a_cluster_that_goes_away_in_the_middle_is_told_in_one_line(spark: SparkSession) -> None:
    def away(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        raise ClusterUnreachable("nothing came for 30 s: is the cluster up?")

    with pytest.raises(ClusterUnreachable, match=r"^nothing came for 30 s: is the cluster up\?$"):
        list(json_lines(spark.range(1).mapInArrow(away, "id bigint")))


def test_a_reading_refuses_a_codec_that_is_none(spark: SparkSession, people: str) -> None:
    with pytest.raises(BadInput, match="no codec 'jso'"):
        answer(spark.newSession(), f"SELECT * FROM `{people}`", Reading(key="jso"))


def test_a_query_from_standard_input_ends_quietly_with_its_reader(lastword: CommandLine, people: str) -> None:
    query = f"SELECT p.key, n.id FROM `{people}` p, range(20000) n"
    with lastword.start(
        "sql", "-", "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(query)
        process.stdin.close()
        line = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (set(json.loads(line)), said, process.returncode) == ({"key", "id"}, "", 0)
