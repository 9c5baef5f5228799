"""What `lastword sql` may reach: topics, and files only when they are allowed. Code it never runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from lastword.api.table import Table
from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.spark.query.query_reach import Reach
from lastword.spark.query.sql import Reading, answer
from support.in_process import InProcess

MARK = "lastword.test.ran"
SET = f"java_method('java.lang.System', 'setProperty', '{MARK}', 'yes')"
# {file} has a line that must not be seen; {t} is a topic.
FILES = [
    "SELECT * FROM text.`{file}`",
    "SELECT * FROM TEXT.`{file}`",
    "SELECT * FROM csv.`{file}`",
    "SELECT * FROM json.`{file}`",
    "SELECT * FROM xml.`{file}`",
    "SELECT * FROM binaryFile.`{file}`",
    "SELECT * FROM parquet.`{file}`",
    "SELECT * FROM orc.`{file}`",
    "SELECT * FROM delta.`{folder}`",
    "TABLE text.`{file}`",
    "FROM text.`{file}` |> WHERE value IS NOT NULL",
    "FROM text.`{file}` SELECT value",
    "SELECT key FROM {t} WHERE key IN (SELECT value FROM text.`{file}`)",
    "SELECT key, (SELECT max(value) FROM text.`{file}`) FROM {t}",
    "SELECT key FROM {t} WHERE EXISTS (SELECT 1 FROM text.`{file}` f WHERE f.value <> key)",
    "SELECT key FROM {t} JOIN text.`{file}` ON true",
    "SELECT key FROM {t}, LATERAL (SELECT * FROM text.`{file}`)",
    "SELECT key FROM {t} UNION ALL SELECT value FROM text.`{file}`",
    "WITH f AS (SELECT * FROM text.`{file}`) SELECT * FROM f",
    "WITH f AS (WITH g AS (TABLE text.`{file}`) SELECT * FROM g) SELECT (SELECT max(value) FROM f)",
    "WITH unused AS (SELECT * FROM text.`{file}`) SELECT key FROM {t}",
    "SELECT * FROM (SELECT * FROM text.`{file}`) TABLESAMPLE (50 PERCENT)",
    "SELECT key FROM {t} ORDER BY (SELECT max(value) FROM text.`{file}`)",
    "SELECT * FROM IDENTIFIER('text.`{file}`')",
    "SELECT * FROM explode(array((SELECT max(value) FROM text.`{file}`)))",
    "EXPLAIN SELECT * FROM text.`{file}`",
    "EXPLAIN EXTENDED SELECT * FROM text.`{file}`",
    "DESCRIBE QUERY SELECT * FROM csv.`{file}`",
    "DESCRIBE csv.`{file}`",
    "SHOW COLUMNS IN csv.`{file}`",
]
ELSEWHERE = [
    "SELECT sum(n) OVER w FROM {t} WINDOW w AS (ORDER BY (SELECT max(value) FROM text.`{file}`))",
    "SELECT * FROM IDENTIFIER(concat('text.', '`{file}`'))",
    "SELECT * FROM org.example.Source.`{file}`",
    "SELECT * FROM jdbc.`{file}`",
    "SELECT * FROM `org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{file}`",
    "SELECT * FROM spark_catalog.default.anything",
    "SELECT * FROM global_temp.anything",
    "SELECT * FROM {t} VERSION AS OF 1",
    "SELECT * FROM STREAM({t})",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM read_files('{file}')",
    "SELECT * FROM table_changes_by_path('{folder}', 0)",
    "SELECT * FROM system.builtin.range(3)",
    "SHOW CREATE TABLE csv.`{file}`",
    "SHOW TABLE EXTENDED LIKE '*'",
    "SHOW DATABASES",
    "SHOW PARTITIONS csv.`{file}`",
    "DESCRIBE DATABASE default",
    "SELECT input_file_name() FROM {t}",
    "SELECT input_file_block_start() FROM {t}",
    "SELECT from_avro(headers, '', map('avroSchemaUrl', '{file}')) FROM {t}",
    "SELECT from_protobuf(headers, 'x', '{file}') FROM {t}",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '{file}'))",
    "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '{file}'))",
]
CODE = [
    f"SELECT {SET}",
    f"SELECT {SET.replace('java_method', 'JAVA_Method')}",
    f"SELECT {SET.replace('java_method', '`java_method`')}",
    f"SELECT {SET.replace('java_method', 'reflect')}",
    f"SELECT 1 QUALIFY row_number() OVER (ORDER BY {SET}) = 1",
    f"SELECT {SET.replace('java_method', 'try_reflect')}",
    f"SELECT {SET.replace('java_method', 'system.builtin.java_method')}",
    f"SELECT {SET.replace('java_method', 'builtin.reflect')}",
    f"SELECT {SET.replace('java_method(', 'IDENTIFIER(' + chr(39) + 'java_method' + chr(39) + ')(')}",
    f"SELECT IDENTIFIER({SET})",
    f"SELECT * FROM IDENTIFIER({SET})",
    f"SELECT key FROM {{t}} WHERE {SET} IS NULL",
    f"SELECT key FROM {{t}} GROUP BY key HAVING max({SET}) IS NULL",
    f"SELECT key FROM {{t}} ORDER BY {SET}",
    f"SELECT transform(array(1), x -> {SET}) FROM {{t}}",
    f"SELECT sum(n) FILTER (WHERE {SET} IS NULL) FROM {{t}}",
    f"SELECT sum(n) OVER (PARTITION BY {SET}) FROM {{t}}",
    f"SELECT sum(n) OVER w FROM {{t}} WINDOW w AS (PARTITION BY {SET})",
    f"SELECT CASE WHEN true THEN upper({SET}) END",
    f"SELECT * FROM VALUES ({SET})",
    f"SELECT * FROM range(length({SET}))",
    f"SELECT * FROM {{t}} LATERAL VIEW explode(array({SET})) x AS y",
    f"SELECT * FROM {{t}} LATERAL VIEW {SET} x AS y",
    f"SELECT * FROM explode(array({SET}))",
    f"SELECT * FROM {{t}} JOIN range(1) r ON {SET} IS NULL",
    f"SELECT (SELECT {SET})",
    f"WITH c AS (SELECT {SET} AS x) SELECT * FROM c",
    f"SELECT * FROM (SELECT 1 AS a, 2 AS b) PIVOT (max({SET}) FOR a IN (1))",
    f"SELECT from_json('{{{{}}}}', {SET})",
    f"EXPLAIN SELECT {SET}",
    f"DESCRIBE QUERY SELECT {SET}",
    "SELECT java_method('no.such.Class', 'method')",
    "SELECT mine(key) FROM {t}",
    "SELECT * FROM text.`{file}` WITH (`fs.file.impl` = 'no.such.Class')",
    "SELECT * FROM parquet.`{file}` WITH ('parquet.crypto.factory.class' = 'no.such.Class')",
]


@pytest.fixture(scope="module")
def topic(connection: Connection) -> Iterator[str]:
    name = f"reach_{uuid4().hex[:8]}"
    create_topic(connection, name, partitions=2)
    with Table(connection, name) as table:
        table.put("ann", {"n": 1, "tags": ["a", "b"], "home": {"city": "Oslo"}, "text": '{"deep": [1, 2]}'})
        table.put("bob", {"n": 2, "tags": [], "home": None, "text": "<a><b>7</b></a>"})
    yield name
    delete_topic(connection, name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    (folder / "seen").write_text("a,b\nSECRET,1\n")
    return folder


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> SparkSession:
    """A session that has a function of its user's."""
    made = spark.newSession()
    made.udf.register("mine", lambda text: text)
    return made


def ran(spark: SparkSession) -> bool:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    return system.clearProperty(MARK) is not None


def filled(query: str, topic: str, file: Path) -> str:
    return query.format(t=topic, file=file, folder=file.parent)


@pytest.mark.quick
def test_spark_itself_refuses_none_of_it(asked: SparkSession, place: Path) -> None:
    """A control: what the tests below see refused would be read, and would run."""
    assert "SECRET,1" in str(asked.sql(f"SELECT * FROM text.`{place / 'seen'}`").collect())
    assert "/" in str(asked.sql("SELECT '${env:PATH}'").collect())
    asked.sql(f"SELECT {SET}").collect()
    assert ran(asked)


@pytest.mark.quick
@pytest.mark.parametrize("query", FILES)
def test_a_file_is_refused_before_anyone_looks_whether_it_is_there(
    asked: SparkSession, topic: str, place: Path, query: str
) -> None:
    with pytest.raises(BadInput, match="is a file, and a query sees topics only: allow files with --allow-files"):
        answer(asked, filled(query, topic, place / "missing"))


@pytest.mark.quick
@pytest.mark.parametrize("query", [*ELSEWHERE, *CODE])
def test_whatever_is_no_topic_or_runs_code_is_refused_before_it_is_looked_up(
    asked: SparkSession, topic: str, place: Path, query: str
) -> None:
    with pytest.raises(
        BadInput, match=r"is refused, because a query (only reads|sees topics and nothing else): "
    ) as error:
        answer(asked, filled(query, topic, place / "seen"))
    assert "\n" not in str(error.value)
    assert not ran(asked)


@pytest.mark.parametrize("query", CODE)
def test_files_being_allowed_allows_no_code(asked: SparkSession, topic: str, place: Path, query: str) -> None:
    with pytest.raises(BadInput, match=" is refused, because "):
        answer(asked, filled(query, topic, place / "seen"), Reading(allow_files=True))
    assert not ran(asked)


@pytest.mark.quick
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM text.`{file}`",
        "SELECT id FROM range(2) WHERE id IN (SELECT length(value) FROM text.`{file}`)",
        "WITH f AS (SELECT * FROM text.`{file}`) SELECT (SELECT max(value) FROM f)",
        "SELECT * FROM of_files",
        "SELECT * FROM in_catalog_{mark}",
        f"SELECT {SET}",
        f"SELECT try_{SET.replace('java_method', 'reflect')}",
        f"SELECT sum(id) OVER w FROM range(3) WINDOW w AS (PARTITION BY transform(array(1), x -> {SET}))",
        f"SELECT id FROM range(2) WHERE EXISTS (SELECT {SET} AS x FROM range(3) GROUP BY 1)",
        "SELECT mine(cast(id AS STRING)) FROM range(2)",
        "SELECT input_file_name() FROM range(2)",
    ],
)
def test_the_analysed_query_is_refused_by_what_its_names_have_become(
    asked: SparkSession, place: Path, query: str
) -> None:
    """The second look by itself, without the first one."""
    mark = uuid4().hex
    asked.read.text(str(place / "seen")).createOrReplaceTempView("of_files")
    asked.sql(f"CREATE TABLE in_catalog_{mark} (value STRING) USING text LOCATION '{place / 'seen'}'")
    analysed = asked.sql(query.format(file=place / "seen", mark=mark))._jdf.queryExecution().analyzed()
    with pytest.raises(BadInput, match="is refused, because a query sees topics and nothing else: "):
        Reach(spark=asked).check_analysed(analysed, ("reach",))
    asked.sql(f"DROP TABLE in_catalog_{mark}")
    assert not ran(asked)


@pytest.mark.quick
def test_a_view_and_a_table_of_the_session_are_no_topics(asked: SparkSession, place: Path) -> None:
    asked.read.text(str(place / "seen")).createOrReplaceTempView("of_files")
    for query in ("SELECT * FROM of_files", "EXPLAIN SELECT * FROM of_files"):
        with pytest.raises(BadInput, match="is refused, because a query sees topics and nothing else: "):
            answer(asked, query)


# Both lists are answered by `make soak`, the first one by `make test` too.
COMMON = [
    ("SELECT a.key FROM {t} a JOIN {t} b ON a.n = b.n WHERE a.key LIKE 'a%'", [("ann",)]),
    ("WITH c AS (TABLE {t}), d AS (SELECT max(n) AS n FROM c) SELECT key FROM c JOIN d USING (n)", [("bob",)]),
    ("SELECT key, rank() OVER w FROM {t} WINDOW w AS (ORDER BY n DESC) ORDER BY 2", [("bob", 1), ("ann", 2)]),
    ("SELECT key FROM {t} QUALIFY row_number() OVER (ORDER BY n DESC) = 1", [("bob",)]),
    ("SELECT key FROM {t} o WHERE EXISTS (SELECT 1 FROM {t} i WHERE i.n > o.n)", [("ann",)]),
    ("SELECT key, tag FROM {t} LATERAL VIEW explode(tags) x AS tag ORDER BY tag", [("ann", "a"), ("ann", "b")]),
    (
        "SELECT get_json_object(text, '$.deep[1]'), from_json(text, 'deep ARRAY<INT>').deep FROM {t} WHERE n = 1",
        [("2", [1, 2])],
    ),
    (
        "SELECT '${env:HOME}${system:user.home}${spark.app.name}'",
        [("${env:HOME}${system:user.home}${spark.app.name}",)],
    ),
    ("SELECT id, n FROM range(1, 3) JOIN {t} ON id = n ORDER BY id", [(1, 1), (2, 2)]),
]
RARE = [
    ("SELECT a.key FROM {t} a LEFT ANTI JOIN {t} b ON a.n < b.n", [("bob",)]),
    ("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT sum(x) FROM r", [(6,)]),
    ("SELECT sum(n) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING) FROM {t} ORDER BY key", [(1,), (3,)]),
    ("SELECT key FROM {t} WHERE n = (SELECT max(n) FROM {t})", [("bob",)]),
    ("SELECT key FROM {t} WHERE key NOT IN (SELECT key FROM {t} WHERE n > 1)", [("ann",)]),
    ("SELECT key, pos FROM {t}, LATERAL posexplode(tags) AS p(pos, tag) WHERE pos > 0", [("ann", 1)]),
    ("SELECT key, explode_outer(tags) AS tag FROM {t} WHERE n = 2", [("bob", None)]),
    ("SELECT t.x FROM {t}, LATERAL (SELECT n * 10 AS x) t ORDER BY x", [(10,), (20,)]),
    ("SELECT to_json(home), json_object_keys(text) FROM {t} WHERE n = 1", [('{"city":"Oslo"}', ["deep"])]),
    ("SELECT schema_of_json('[1]'), schema_of_xml('<a>1</a>')", [("ARRAY<BIGINT>", "STRUCT<_VALUE: BIGINT>")]),
    ("SELECT xpath_int(text, 'a/b'), from_xml(text, 'b INT').b FROM {t} WHERE n = 2", [(7, 7)]),
    ("SELECT variant_get(parse_json(text), '$.deep[0]', 'int') FROM {t} WHERE n = 1", [(1,)]),
    ("SELECT transform(tags, x -> upper(x)) FROM {t} WHERE n = 1", [(["A", "B"],)]),
    ("SELECT aggregate(array(1, 2), 0, (a, x) -> a + x)", [(3,)]),
    (
        "SELECT n % 2 AS odd, collect_set(key) FROM {t} GROUP BY ALL HAVING count(*) > 0 ORDER BY odd LIMIT 1",
        [(0, ["bob"])],
    ),
    ("SELECT key, count(*) FROM {t} GROUP BY ROLLUP (key) ORDER BY key NULLS FIRST LIMIT 2", [(None, 2), ("ann", 1)]),
    ("SELECT * FROM (SELECT key, n FROM {t}) PIVOT (sum(n) FOR key IN ('ann', 'bob'))", [(1, 2)]),
    ("SELECT * FROM (SELECT 1 AS a, 2 AS b) UNPIVOT (v FOR k IN (a, b)) ORDER BY k", [("a", 1), ("b", 2)]),
    ("SELECT key FROM {t} EXCEPT SELECT 'bob' INTERSECT SELECT 'bob' UNION SELECT 'ann'", [("ann",)]),
    ("SELECT DISTINCT key FROM {t} ORDER BY key LIMIT 1 OFFSET 1", [("bob",)]),
    ("SELECT /*+ BROADCAST(b), REPARTITION(2) */ a.key FROM {t} a, {t} b WHERE a.n + b.n = 2", [("ann",)]),
    ("FROM {t} |> WHERE n > 1 |> SELECT key |> EXTEND length(key) AS size", [("bob", 3)]),
    ("SELECT * FROM VALUES (1, 'x'), (1 + 1, 'y') AS v(a, b) WHERE a > 1", [(2, "y")]),
    ("SELECT count(*) FROM {t} TABLESAMPLE (100 PERCENT)", [(2,)]),
    ("SELECT count(DISTINCT key) FILTER (WHERE n > 1), max_by(key, n) FROM {t}", [(1, "bob")]),
    ("SELECT listagg(key) WITHIN GROUP (ORDER BY key) FROM {t}", [("annbob",)]),
    ("SELECT count(*) FROM {t} WHERE n IN (" + ", ".join(map(str, range(3000))) + ")", [(2,)]),
]


@pytest.mark.parametrize(("query", "rows"), [*(pytest.param(*each, marks=pytest.mark.quick) for each in COMMON), *RARE])
def test_what_sees_topics_alone_is_answered(spark: SparkSession, topic: str, query: str, rows: list[object]) -> None:
    found = answer(spark.newSession(), query.replace("{t}", topic)).rows.collect()
    assert [tuple(row) for row in found] == rows


@pytest.mark.parametrize(
    "query",
    [
        "EXPLAIN SELECT key FROM {t}",
        "DESCRIBE {t}",
        "DESCRIBE {t} key",
        "DESCRIBE QUERY SELECT key FROM {t}",
        "SHOW COLUMNS IN {t}",
        "SHOW FUNCTIONS LIKE 'upper'",
        "DESCRIBE FUNCTION upper",
        "SHOW TABLES LIKE 'reach*'",
    ],
)
def test_what_tells_about_topics_and_queries_is_answered(spark: SparkSession, topic: str, query: str) -> None:
    assert answer(spark.newSession(), query.format(t=topic)).rows.count() > 0


@pytest.mark.quick
def test_files_that_are_allowed_are_read_beside_topics(verb: InProcess, topic: str, place: Path) -> None:
    query = f"SELECT t.key, f.a FROM {topic} t JOIN csv.`{place / 'seen'}` WITH (header = true) f ON f.b = t.n"
    assert verb("sql", query, "--allow-files", "--json") == '{"key":"ann","a":"SECRET"}\n'
    refused = verb.run("sql", query)
    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"lastword: the query: csv.{place / 'seen'} is a file, and a query sees topics only: "
        "allow files with --allow-files\n"
    )


def test_xml_reads_no_file_by_an_entity(spark: SparkSession, place: Path) -> None:
    for document in (
        f'<!DOCTYPE a [<!ENTITY e SYSTEM "{(place / "seen").as_uri()}">]><a>&e;</a>',
        f'<!DOCTYPE a SYSTEM "{(place / "seen").as_uri()}"><a>x</a>',
    ):
        query = (
            f"SELECT try_to_number(xpath_string('{document}', 'a'), '9') IS NULL, from_xml('{document}', 'a STRING')"
        )
        try:
            rows = str(answer(spark.newSession(), query).rows.collect())
        except Exception as refusal:
            rows = str(refusal)
        assert "SECRET" not in rows


@pytest.mark.quick
def test_a_new_version_of_spark_has_its_functions_looked_at(spark: SparkSession) -> None:
    """Before the new value goes in here: does one of the new functions run code, or read what is no topic?

    Then its class belongs to `query_reach`.
    """
    state = spark.newSession()._jsparkSession.sessionState()
    names = []
    for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
        found = registry.listFunction()
        infos = [registry.lookupFunction(found.apply(index)).get() for index in range(found.size())]
        names += [info.getName() for info in infos if info.getSource() == "built-in"]
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
    assert (len(names), digest[:16]) == (578, "918358425367072a")
