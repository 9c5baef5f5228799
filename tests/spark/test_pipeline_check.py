"""`lastword run FILE --check`: every mistake of a pipeline file with its line, all at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lastword.core.errors import ClusterUnreachable
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.pipeline.checking.check import mistakes_in
from lastword.pipeline.plan.plan_file import read_plan
from support.command_line import CommandLine
from support.in_process import InProcess

ROOT = Path(__file__).parents[2]
Topics = Callable[..., None]
Wrong = Callable[..., list[str]]

FILE = """\
app = "shop"
[source]
topic = "check-orders"
schema = \"\"\"
{schema}
\"\"\"
[[rules]]
name = "one"
when = \"\"\"{when}\"\"\"
to = "check-copies"
key = \"\"\"{key}\"\"\"
value = {{ field = '''{value}''' }}
[[tables]]
topic = "check-counts"
key = "rule"
counters = {{ counted = '''{counter}''' }}
"""
FINE = {
    "schema": "id STRING NOT NULL, cents BIGINT, at TIMESTAMP, home STRUCT<city: STRING, zip: STRING>",
    "when": "true",
    "key": "rule",
    "value": "id",
    "counter": "1",
}
ALONE = "an expression sees one record at a time"
AGGREGATE = f"an aggregate over several records: {ALONE} (and counters are added up without it)"
WINDOW = f"a window over other records: {ALONE}"
GENERATOR = f"explode and similar functions make several rows of one: {ALONE}, and has one answer"
SUBQUERY = f"a subquery reads other records: {ALONE}"
CHANGING = (
    "its result changes from call to call (like rand, uuid, now), but a record that is read again after a crash must "
    "give the same result: use the fields of the record"
)
RAISES = (
    "raise_error and assert_true stop a query, and a pipeline must not stop: write a rule that matches the records "
    "which someone should see"
)
NO_PATTERN = "the pattern '[' is no regular expression for Java (Unclosed character class): correct it"
NUMBER = "write a number up to 1,000,000 there"
ENDS = "write its ends and its step, at most 1,000,000 elements"
STAR = "* means all fields: name the fields that you need"


def as_large(function: str, hint: str) -> str:
    return f"the size of the result of {function} depends on a field of the record: {hint}"


@pytest.fixture(scope="module")
def topics(connection: Connection) -> Iterator[Topics]:
    """Makes topics, which are gone after the tests of this file."""
    with ExitStack() as stack:

        def make(*names: str, policy: str = "compact") -> None:
            for name in names:
                create_topic(connection, name, partitions=1, settings={"cleanup.policy": policy})
                stack.callback(delete_topic, connection, name)

        yield make


@pytest.fixture(scope="module")
def there(topics: Topics) -> None:
    """The topics that the file of these tests names."""
    topics("check-orders", "check-copies", policy="delete")
    topics("check-counts")


@pytest.fixture
def wrong(spark: SparkSession, connection: Connection, there: None, tmp_path: Path) -> Wrong:
    """What is wrong with the file when some of its expressions are others: lines and texts."""

    def found(**texts: str) -> list[str]:
        (tmp_path / "p.toml").write_text(FILE.format(**{**FINE, **texts}))
        mistakes = mistakes_in(read_plan(tmp_path / "p.toml"), spark, connection)
        return [f"{mistake.line}: {mistake.text}" for mistake in mistakes]

    return found


def test_the_file_of_these_tests_is_fine(wrong: Wrong) -> None:
    assert wrong() == []


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("when", "ID LIKE 'a%' AND home.city IN ('Oslo', 'Rome') OR cents IS NULL"),
        ("when", "exists(array(1, 2), x -> x > cents) -- a comment"),
        ("when", "repeat(id, 3) = lpad(id, least(length(id), 100), 'x') OR size(sequence(1, 10)) > cents"),
        ("when", "try_divide(1, cents) > try_cast(id AS INT) OR id RLIKE home.zip"),
        ("when", "cents / 0 > 1 OR cast('now' AS INT) = 1"),
        ("key", "cast(id AS BINARY)"),
        ("key", "concat(rule, ':', home.zip)"),
        ("value", "null"),
        ("value", "aes_encrypt(id, '0000111122223333', 'ECB')"),
        ("value", "aes_encrypt(id, '0000111122223333', 'CBC', 'DEFAULT', X'00000000000000000000000000000000')"),
        ("value", "named_struct('rule', rule, 'home', home, 'at', at, 'all', array(1.5D))"),
        ("value", "map('a', X'FF', 'b', null)"),
        ("counter", "if(matched, cents, 0)"),
        ("counter", "cast(size(split(id, ',')) AS TINYINT)"),
        ("schema", "id STRING COMMENT 'one, two', cents DECIMAL(10, 2) -- it's, so\n, at MAP<STRING, ARRAY<INT>>"),
    ],
)
def test_what_is_right_is_not_refused(wrong: Wrong, role: str, text: str) -> None:
    assert wrong(**{role: text}) == []


NOT_BOOLEAN = "and a condition is a BOOLEAN: compare it with something"
NOT_WHOLE = "and a counter adds up whole numbers: cast(... AS BIGINT)"
NO_KEY = "and a key is a STRING or BINARY: cast(... AS STRING)"
RULE = "the rule's name in key and value"
MATCHED = "whether the rule matches in counters"


@pytest.mark.parametrize(
    ("role", "text", "problem"),
    [
        ("when", "idd = '1'", "no field 'idd': did you mean 'id'?"),
        ("when", "home.citty = '1'", "no field 'citty': did you mean 'city'?"),
        ("when", "colour = 1", "no field 'colour': there are id, cents, at, home"),
        ("when", "exists(array(1), x -> x > cent)", "no field 'cent': did you mean 'cents'?"),
        ("when", "matched", f"'matched' can't be used here: it means {MATCHED}"),
        ("when", "rule = 'one'", f"'rule' can't be used here: it means {RULE}"),
        ("when", "cents", f"it is BIGINT, {NOT_BOOLEAN}"),
        ("when", "NULL", f"it is VOID, {NOT_BOOLEAN}"),
        ("when", "contians(id, 'a')", "no function 'contians': did you mean 'contains'?"),
        ("when", "rand() > 0.5", CHANGING),
        ("when", "at < current_timestamp", CHANGING),
        ("when", "at < TIMESTAMP 'now'", CHANGING),
        ("when", "at < 'today'", CHANGING),
        ("when", "cast(at AS DATE) = cast(' Tomorrow' AS DATE)", CHANGING),
        ("when", "cast(at AS DATE) = to_date(concat('to', 'day'))", CHANGING),
        ("when", "count(*) > 1", AGGREGATE),
        ("when", "max(cents) > cents", AGGREGATE),
        ("when", "row_number() OVER (ORDER BY id) = 1", WINDOW),
        ("when", "window(at, '1 day').start < at", WINDOW),
        ("when", "id IN (SELECT name FROM others)", SUBQUERY),
        ("when", "EXISTS (SELECT 1 FROM others)", SUBQUERY),
        ("when", "true AS yes", "AS names the expression, which already has a name in the file: remove the AS"),
        ("key", "cents", f"it is BIGINT, {NO_KEY}"),
        ("key", "matched", f"'matched' can't be used here: it means {MATCHED}"),
        ("value", "explode(array(1, 2))", GENERATOR),
        ("value", "1 + explode(array(1, 2))", GENERATOR),
        ("value", "posexplode(array(1, 2))", GENERATOR),
        ("value", "*", STAR),
        ("value", "struct(*)", STAR),
        ("value", "uuid()", CHANGING),
        ("value", "(SELECT max(a) FROM others)", SUBQUERY),
        ("value", "reflect('java.lang.Math', 'abs', 1)", CHANGING),
        ("value", "try_reflect('java.lang.Math', 'abs', 1)", CHANGING),
        ("value", "java_method('java.lang.System', 'getProperty', id)", CHANGING),
        ("value", "if(cents > 1, raise_error('x'), 1)", RAISES),
        ("value", "assert_true(cents > 1)", RAISES),
        ("when", "id RLIKE '['", NO_PATTERN),
        ("value", "regexp_count(id, concat('', '['))", NO_PATTERN),
        ("value", "split(id, '[')", NO_PATTERN),
        ("value", "aes_encrypt(id, '0000111122223333')", CHANGING),
        ("value", "aes_encrypt(id, '0000111122223333', 'CBC', 'DEFAULT', cast(id AS BINARY))", CHANGING),
        ("value", "repeat(id, cast(cents AS INT))", as_large("repeat", f"{NUMBER}, or least(..., 1000)")),
        ("value", "repeat(id, 2000000)", as_large("repeat", f"{NUMBER}, or least(..., 1000)")),
        ("value", "upper(space(cast(cents AS INT)))", as_large("space", f"{NUMBER}, or least(..., 1000)")),
        ("value", "rpad(id, length(id))", as_large("rpad", f"{NUMBER}, or least(..., 1000)")),
        ("value", "lpad(X'FF', int(cents), X'00')", as_large("lpad", f"{NUMBER}, or least(..., 1000)")),
        ("value", "array_repeat(id, int(cents))", as_large("array_repeat", f"{NUMBER}, or least(..., 1000)")),
        ("value", "array_insert(array(1), int(cents), 1)", as_large("array_insert", NUMBER)),
        ("value", "array_insert(array(1), -2000000, 1)", as_large("array_insert", NUMBER)),
        ("value", "format_number(1.5, int(cents))", as_large("format_number", f"{NUMBER}, or least(..., 1000)")),
        (
            "value",
            "sequence(1, cents)",
            as_large("sequence", "write its ends and its step, at most 1,000,000 elements"),
        ),
        ("value", "format_string(id, 1)", as_large("format_string", "write its format as a text")),
        ("counter", "cents / 2", f"it is DOUBLE, {NOT_WHOLE}"),
        ("counter", "matched", f"it is BOOLEAN, {NOT_WHOLE}"),
        ("counter", "if(matchd, 1, 0)", "no field 'matchd': did you mean 'matched'?"),
        ("counter", "sum(cents)", AGGREGATE),
        ("schema", "id STRING, Id INT", "a second field 'Id', which Spark can't tell from 'id': keep one of them"),
        ("schema", "id STRING, rule INT", f"a field can't be called 'rule', which means {RULE}: leave it out"),
        ("schema", "id STRING,", "a column is missing beside a comma: add it, or remove the comma"),
        ("schema", "id STRING, cents BIGNT", "column 'cents': no type 'BIGNT': did you mean 'BIGINT'?"),
        ("schema", "id STRING, g GEOMETRY(4326)", "column 'g': JSON has no GEOMETRY(4326): read it as a STRING"),
    ],
)
def test_each_mistake_is_told_at_its_line(wrong: Wrong, role: str, text: str, problem: str) -> None:
    where = {
        "schema": "5: source, schema",
        "when": "9: rule one, when",
        "key": "11: rule one, key",
        "value": "12: rule one, value 'field'",
        "counter": "16: table check-counts, counter 'counted'",
    }
    assert wrong(**{role: text}) == [f"{where[role]}: {problem}"]


@pytest.mark.parametrize(
    ("role", "text", "start", "end"),
    [
        ("when", "id = = 1", "9: rule one, when, column 6: Syntax error at or near", "[PARSE_SYNTAX_ERROR]"),
        ("when", "\n\nid = = 1", "11: rule one, when, column 6: Syntax error at or near", "[PARSE_SYNTAX_ERROR]"),
        ("when", "cents + home > 1", "9: rule one, when, column 1: Cannot resolve", "]"),
        (
            "when",
            "from_csv(id, 'a INT', map(id, id)).a = 1",
            "9: rule one, when: Spark can't analyse it: ",
            "XX000",
        ),
        ("schema", "id", "5: source, schema: column 'id': ", "write it like  email STRING NOT NULL"),
        ("schema", "id STRING,\nm\nMAP<INT, INT>", "6: source, schema: column 'm': Cannot resolve", "NOT NULL"),
    ],
)
def test_sql_that_spark_refuses_has_its_reason_in_one_line(
    wrong: Wrong, role: str, text: str, start: str, end: str
) -> None:
    [problem] = wrong(**{role: text})
    assert (problem.startswith(start), problem.endswith(end), problem.count("\n")) == (True, True, 0), problem


def test_every_unknown_name_of_an_expression_is_told_at_its_own_line(wrong: Wrong) -> None:
    assert wrong(when="idd = '1'\nAND contians(id, 'a')\nAND cents > 0 AND cent > 1\nAND idd <> ''") == [
        "9: rule one, when: no field 'idd': did you mean 'id'?",
        "10: rule one, when: no function 'contians': did you mean 'contains'?",
        "11: rule one, when: no field 'cent': did you mean 'cents'?",
    ]


def test_a_bad_column_makes_no_mistakes_of_the_expressions_that_use_it_and_hides_none_of_the_others(
    wrong: Wrong,
) -> None:
    told = wrong(schema="id STRING,\ncents BIGNT", when="cents > 'a'", value="idd", counter="if(matched, cents)) ")
    assert [line.partition(":")[0] for line in told] == ["6", "13", "17"]


@pytest.fixture(scope="module")
def shipped(topics: Topics) -> None:
    """The topics of the shipped files."""
    topics("new_users", "actions", "orders", "order_reviews", "warehouse_news", policy="delete")
    topics("team_stats", "order_counts", "order_worth")


@pytest.mark.quick
@pytest.mark.usefixtures("shipped")
def test_the_shipped_files_are_fine_once_their_topics_exist(verb: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert verb("run", "pipelines/teams.toml", "--check") == "pipelines/teams.toml: 15 rules, 1 table: fine\n"
    assert json.loads(verb("run", "--check", "pipelines/orders.toml", "--json")) == {
        "file": "pipelines/orders.toml",
        "rules": 3,
        "tables": 2,
        "mistakes": [],
    }


BROKEN = """\
app = "broken"
colour = 1

[source]
topic = "broken-copied"
schema = \"\"\"
id STRING NOT NULL,
cents BIGINT
\"\"\"

[[rules]]
name = "a"
wen = "true"
to = "broken-copy"
value = { id = "idd", cents = "cents" }

[[rules]]
name = "a"
when = "cents"
to = "broken-news"
value = { id = "id" }

[[rules]]
name = "c"
when = "true"
to = "broken-copies"
value = { id = "id" }

[[tables]]
topic = "broken-news"
key = "rule"
counters = { seen = "1", worth = "if(matched, cents, 0.5)" }
"""


@pytest.mark.quick
def test_a_bad_file_gives_every_mistake_at_once(
    verb: InProcess, topics: Topics, connection: Connection, tmp_path: Path
) -> None:
    topics("broken-copies")
    topics("broken-news", policy="delete")
    (tmp_path / "broken.toml").write_text(BROKEN)
    path, servers = tmp_path / "broken.toml", connection.bootstrap_servers
    done = verb.run("run", str(path), "--check")
    assert (done.code, done.stdout) == (2, "")
    *told, count = done.stderr.splitlines()
    make, policy = "did you mean 'broken-copies'? or make it with  lastword topic create", "--set cleanup.policy"
    alter = "run  lastword topic alter broken-news"
    expire = "is not compacted (cleanup.policy=delete), so its rows would expire"
    assert told == [
        f"{path}:{line}"
        for line in (
            "2: unknown key 'colour': it takes app, source, rules, tables",
            f"5: source, topic: no topic 'broken-copied' at {servers}: {make} broken-copied {policy}=delete",
            "11: rule a: 'when' is missing: add it, like  when = \"credit < 0\"",
            "13: rule a: unknown key 'wen': did you mean 'when'?",
            f"14: rule a, to: no topic 'broken-copy' at {servers}: {make} broken-copy {policy}=delete",
            "15: rule a, value 'id': no field 'idd': did you mean 'id'?",
            "18: a second rule called 'a' (the first one: line 12): give it another name",
            f"19: rule a, when: it is BIGINT, {NOT_BOOLEAN}",
            "20: rule a, to: 'broken-news' is a table of this file, for counters alone: name another topic",
            "26: rule c, to: topic 'broken-copies' is compacted and takes no record without a key: give the rule a key",
            f"30: table broken-news, topic: topic 'broken-news' {expire}: {alter} {policy}=compact",
            f"32: table broken-news, counter 'worth': it is DECIMAL(21,1), {NOT_WHOLE}",
        )
    ]
    assert count == f"lastword: 12 mistakes in {path}"
    asked = verb.run("run", str(path), "--check", "--json")
    assert (asked.code, asked.stderr) == (2, "")
    said = json.loads(asked.stdout)["mistakes"]
    assert [f"{path}:{mistake['line']}: {mistake['text']}" for mistake in said] == told


def test_a_topic_that_many_rules_name_is_missing_once(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    file = (ROOT / "pipelines/teams.toml").read_text().replace('"actions"', '"nowhere-at-all"')
    (tmp_path / "p.toml").write_text(file)
    mistakes = mistakes_in(read_plan(tmp_path / "p.toml"), spark, connection)
    [missing] = [mistake for mistake in mistakes if "nowhere-at-all" in mistake.text]
    assert (missing.line, "(named 15 times)" in missing.text) == (28, True)


@pytest.mark.parametrize("asked", [Connection(bootstrap_servers="127.0.0.1:1"), ClusterUnreachable("nobody is there")])
def test_a_cluster_that_is_away_is_one_mistake_and_hides_no_other(
    spark: SparkSession, tmp_path: Path, asked: Connection | ClusterUnreachable
) -> None:
    (tmp_path / "p.toml").write_text(FILE.format(**{**FINE, "when": "idd = 1"}))
    away, bad = mistakes_in(read_plan(tmp_path / "p.toml"), spark, asked)
    assert (away.line, away.is_unreachable) == (3, True)
    assert away.text.startswith("the topics can't be checked: no")
    assert (bad.line, bad.text) == (9, "rule one, when: no field 'idd': did you mean 'id'?")


def test_without_a_cluster_a_file_is_checked_all_the_same(alone: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(FILE.format(**FINE))
    done = alone.run("run", str(tmp_path / "p.toml"), "--check")
    assert (done.returncode, done.stdout) == (3, "")
    # The first session of a machine has something to say too.
    away, count = [line for line in done.stderr.splitlines() if "p.toml" in line]
    assert away.startswith(f"{tmp_path}/p.toml:3: the topics can't be checked: no local cluster is running: ")
    assert count == f"lastword: 1 mistake in {tmp_path}/p.toml"


def test_a_file_that_is_no_toml_is_told_without_spark(
    verb: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.toml"
    path.write_text("app = shop\n")
    # A cluster that is away would be told too, if it were asked for.
    monkeypatch.setenv("LASTWORD_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    done = verb.run("run", str(path), "--check")
    assert (done.code, done.stderr.splitlines()) == (
        2,
        [
            f"{path}:1: not TOML: Invalid value (at line 1, column 7): correct it to see other mistakes",
            f"lastword: 1 mistake in {path}",
        ],
    )


@pytest.mark.usefixtures("shipped")
def test_the_page_shows_what_is_told(spark: SparkSession, connection: Connection, tmp_path: Path) -> None:
    page = (ROOT / "docs/pipeline.md").read_text()
    file, told = re.findall(r"^```toml\n(# broken.*?)^```.*?^```text\n(.*?)^```", page, re.M | re.S)[0]
    (tmp_path / "broken.toml").write_text(file)
    mistakes = mistakes_in(read_plan(tmp_path / "broken.toml"), spark, connection)
    shown = [
        mistake.as_line("broken.toml").replace(connection.bootstrap_servers, "127.0.0.1:9092") for mistake in mistakes
    ]
    assert [*shown, f"lastword: {len(shown)} mistakes in broken.toml"] == told.splitlines()
