"""What every rule says of every record, in one pass of Spark's JVM: only what must be written comes out of it.

Each record gives a row: its place, the records that its matches emit, and what it adds to the counters that depend on
its fields. One that is in doubt also gives its key and value, for `verdicts` to look at; one that is unreadable emits
nothing. Spark's ANSI mode must be off: what can't
be computed is then null, and a null condition is no match, where an error would stop the pipeline at that record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lastword.pipeline.expressions import nodes_of
from lastword.pipeline.names_in_sql import with_name
from lastword.pipeline.plan import Pipeline, Rule
from lastword.pipeline.verdicts import SourceField

# The fields of a source keep their names, so columns of ours have others.
_OURS = "__lastword_"
_PARSED, _TEXT, _UNREADABLE, _DOUBT = (f"{_OURS}{name}" for name in ("parsed", "text", "unreadable", "doubt"))
# Of numbers, objects, lists, true and false, as ASCII.
_FIRST_OF_OTHERS = [ord(first) for first in "-0123456789{[tf"]
# What Spark would else take as JSON.
_STRICT = {
    "columnNameOfCorruptRecord": _UNREADABLE,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_PLACE = ("partition", "offset", "timestamp")


@dataclass(frozen=True, kw_only=True)
class Counter:
    """What a rule's counter in a table grows by: so much for each match and each miss, or what `increments` says."""

    table: str
    rule: int
    name: str
    when_matched: int = 0
    when_missed: int = 0
    # The place in `increments`, for a counter that depends on the record's fields.
    increment: int | None = None


def counters_of(spark: SparkSession, plan: Pipeline) -> tuple[Counter, ...]:
    """Every counter of every rule and table."""
    found: list[Counter] = []
    depending = 0
    for table in plan.tables:
        for name, expression in table.counters.items():
            steps = _steps(spark, expression)
            for rule in range(len(plan.rules)):
                if steps is None:
                    found.append(Counter(table=table.topic, rule=rule, name=name, increment=depending))
                    depending += 1
                else:
                    matched, missed = steps
                    found.append(
                        Counter(table=table.topic, rule=rule, name=name, when_matched=matched, when_missed=missed)
                    )
    return tuple(found)


def evaluated(records: DataFrame, plan: Pipeline, counters: tuple[Counter, ...]) -> DataFrame:
    """The rows described above: partition, offset, timestamp, doubt, key, value, unread, emitted, increments."""
    schema = source_schema(plan)
    ours = records.select(*[F.col(name).alias(_OURS + name) for name in (*_PLACE, "key", "value")])
    ours = ours.withColumn(_TEXT, F.col(_OURS + "value").cast("string"))
    nullable = StructType([StructField(field.name, field.dataType) for field in schema])
    parsed = F.from_json(_TEXT, StructType([*nullable, StructField(_UNREADABLE, StringType())]), _STRICT)
    read = ours.withColumn(_PARSED, parsed).withColumn(_DOUBT, _doubt(schema))
    fields = [F.col(_PARSED).getField(field.name).alias(field.name) for field in schema]
    matched = [F.expr(rule.when).alias(_matched(number)) for number, rule in enumerate(plan.rules)]
    judged = read.select("*", *fields).select("*", *matched)
    unread = [F.when(F.col(_PARSED).getField(field.name).isNull(), F.lit(field.name)) for field in schema]
    is_readable = ~_is_unreadable()
    return judged.select(
        *[F.col(_OURS + name).alias(name) for name in _PLACE],
        F.col(_DOUBT).alias("doubt"),
        *[F.when(F.col(_DOUBT), F.col(_OURS + name)).alias(name) for name in ("key", "value")],
        F.when(F.col(_DOUBT), F.array_compact(F.array(*unread))).alias("unread"),
        F.when(is_readable, _emitted(plan.rules)).alias("emitted"),
        F.when(is_readable, _increments(plan, counters)).alias("increments"),
    )


def fields_of(plan: Pipeline) -> tuple[SourceField, ...]:
    return tuple(
        SourceField(
            name=field.name,
            kind=field.dataType.simpleString().upper(),
            is_required=not field.nullable,
            is_text=isinstance(field.dataType, StringType),
        )
        for field in source_schema(plan)
    )


def source_schema(plan: Pipeline) -> StructType:
    parsed = DataType.fromDDL(plan.source.schema)
    if not isinstance(parsed, StructType):
        raise TypeError(f"{plan.source.schema!r} is no list of fields")
    return parsed


def _steps(spark: SparkSession, expression: str) -> tuple[int, int] | None:
    """What a counter grows by for a match and for a miss; None when that depends on the record's fields."""
    matched, missed = (with_name(expression, "matched", truth) for truth in ("true", "false"))
    parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(matched)
    if any(node.nodeName() == "UnresolvedAttribute" for node in nodes_of(parsed)):
        return None
    (row,) = spark.sql("SELECT 1").select(F.expr(matched).cast("bigint"), F.expr(missed).cast("bigint")).collect()
    return row[0] or 0, row[1] or 0


def _matched(rule: int) -> str:
    return f"{_OURS}matched_{rule}"


def _emitted(rules: tuple[Rule, ...]) -> Column:
    made = [
        F.when(
            F.col(_matched(number)),
            F.struct(F.lit(number).alias("rule"), _key(rule).alias("key"), _value(rule).alias("value")),
        )
        for number, rule in enumerate(rules)
    ]
    return F.array_compact(F.array(*made))


def _key(rule: Rule) -> Column:
    key = F.lit(None) if rule.key is None else F.expr(_of_rule(rule.key, rule))
    return key.cast("binary")


def _value(rule: Rule) -> Column:
    fields = [F.expr(_of_rule(expression, rule)).alias(name) for name, expression in rule.value.items()]
    # A field whose expression is null is null, and not left out.
    return F.to_json(F.struct(*fields), {"ignoreNullFields": "false"}).cast("binary")


def _of_rule(expression: str, rule: Rule) -> str:
    return with_name(expression, "rule", f"'{rule.name}'")


def _increments(plan: Pipeline, counters: tuple[Counter, ...]) -> Column:
    expressions = {(table.topic, name): text for table in plan.tables for name, text in table.counters.items()}
    made = [
        F.coalesce(
            F.expr(with_name(expressions[c.table, c.name], "matched", f"coalesce({_matched(c.rule)}, false)")).cast(
                "bigint"
            ),
            F.lit(0).cast("bigint"),
        )
        for c in counters
        if c.increment is not None
    ]
    return F.array(*made).cast("array<bigint>")


def _is_unreadable() -> Column:
    parsed = F.col(_PARSED)
    return parsed.isNull() | parsed.getField(_UNREADABLE).isNotNull()


def _doubt(schema: StructType) -> Column:
    """Whether a record must be looked at closely: not here, where the code would be more than Java compiles."""
    text, parsed = F.col(_TEXT), F.col(_PARSED)
    is_missing = [parsed.getField(field.name).isNull() for field in schema if not field.nullable]
    # Spark passes over what follows an object, and takes a number as text.
    goes_on = F.octet_length(F.substring_index(text, "}", 1)) + 1 < F.octet_length(text)
    texts = [field.name for field in schema if isinstance(field.dataType, StringType)]
    is_odd = [_may_be_no_text(name, text, parsed.getField(name)) for name in texts]
    found = reduce(or_, [_is_unreadable(), *is_missing, ~F.is_valid_utf8(text), goes_on, *is_odd])
    # Without a value it is null.
    return F.coalesce(found, F.lit(True))


def _may_be_no_text(name: str, text: Column, value: Column) -> Column:
    """Whether a text looks like another kind of JSON value, and is not seen in quotes after its name."""
    named = json.dumps(name, ensure_ascii=False)
    quoted = [text.contains(F.concat(F.lit(f'{named}:{space}"'), value, F.lit('"'))) for space in ("", " ")]
    # A field that is null is no text that looks like something.
    return F.coalesce(F.ascii(value).isin(_FIRST_OF_OTHERS) & ~reduce(or_, quoted), F.lit(False))
