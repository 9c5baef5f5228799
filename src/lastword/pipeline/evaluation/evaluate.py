"""Every rule over every record, in one pass of Spark's JVM: only what must be written comes out of it.

Each record gives a row: its place, for each rule the value that it emits (null without a match), and what it adds to
the counters that depend on its fields. A record in doubt also gives its key and value, for `verdicts` to look at; a
record that is not readable emits nothing. There is a column for each rule, and no array of matches: Spark interprets
functions over arrays, with all that is in them. It is SQL text, because each step of a Column is a call to the JVM.

Every expression of the plan is guarded: a record on which one of them fails is in doubt, and the row says which one.
Conditions come first, then emitted values and increments, and last the failures: three steps of Spark's plan, because
what a step uses twice must have been computed in the step before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lastword.pipeline.evaluation.guarding import Attempt, GuardedPart, failed_parts, one_line, tried
from lastword.pipeline.evaluation.names_in_sql import with_name
from lastword.pipeline.evaluation.verdicts import SourceField
from lastword.pipeline.plan.plan import Pipeline, Rule
from lastword.spark.session.catalyst import nodes_of
from lastword.spark.session.pyspark_private import sql_parser

# The fields of a source keep their names, so our columns have a prefix.
_OURS = "__lastword_"
_PARSED, _TEXT, _UNREADABLE, _DOUBT = (f"{_OURS}{name}" for name in ("parsed", "text", "unreadable", "doubt"))
# Without these Spark takes more than JSON.
_STRICT = (
    *("columnNameOfCorruptRecord", _UNREADABLE),
    *("allowSingleQuotes", "false"),
    *("allowNonNumericNumbers", "false"),
)
_READABLE = f"({_PARSED} IS NOT NULL AND {_PARSED}.{_UNREADABLE} IS NULL)"
# Ends a text of the file that may end with a comment, even a comment whose last character is a backslash.
_END = "\n\n"
_PLACE = ("partition", "offset", "timestamp", "is_end")
_KEYS = "key_"


@dataclass(frozen=True, kw_only=True)
class Counter:
    """How a rule's counter in a table grows: by a constant for each match and each miss, or by its column."""

    table: str
    rule: int
    name: str
    when_matched: int = 0
    when_missed: int = 0
    # Its number among the counters that depend on the record's fields.
    increment: int | None = None


def counters_of(spark: SparkSession, plan: Pipeline) -> tuple[Counter, ...]:
    """Every counter of every rule and table."""
    counters: list[Counter] = []
    depending = 0
    steps_of_all = _steps(spark, [text for table in plan.tables for text in table.counters.values()])
    for table in plan.tables:
        for name, steps in zip(table.counters, steps_of_all, strict=False):
            for rule in range(len(plan.rules)):
                if steps is None:
                    counters.append(Counter(table=table.topic, rule=rule, name=name, increment=depending))
                    depending += 1
                else:
                    matched, missed = steps
                    counters.append(
                        Counter(table=table.topic, rule=rule, name=name, when_matched=matched, when_missed=missed)
                    )
    return tuple(counters)


def evaluated(records: DataFrame, plan: Pipeline, counters: tuple[Counter, ...]) -> DataFrame:
    """The rows described above, for records from `source`; the session must be `guarded`.

    partition, offset, timestamp, is_end, doubt, readable, key, value, unread (the numbers of fields without a value),
    failed (the numbers of those of `parts_of` the plan that did; null if none did); `increment_of` each counter that
    depends on fields; and for each rule `value_of` it, and `key_of` it if it has one.
    No column is a list: Spark adds up the bytes of what it sends after each record, and for a list that takes long.
    """
    fields = source_schema(plan).fields
    ours = [f"{name} AS {_OURS}{name}" for name in (*_PLACE, "key", "value", "plain")]
    schema, options = _literal(f"{plan.source.schema}{_END}, {_UNREADABLE} STRING"), ", ".join(map(_literal, _STRICT))
    parsed = f"from_json({_TEXT}, {schema}, map({options})) AS {_PARSED}"
    read = records.selectExpr(*ours, f"cast(value AS STRING) AS {_TEXT}").selectExpr("*", parsed)
    named = [f"{_field(field.name)} AS {_name(field.name)}" for field in fields]
    # A condition that failed is null, and null is no match.
    conditions = [
        Attempt(name=_matched(number), sql=f"coalesce({_READABLE} AND ({rule.when}{_END}), false)")
        for number, rule in enumerate(plan.rules)
    ]
    named_fields = read.selectExpr("*", f"{_doubt(fields)} AS {_DOUBT}", *named)
    judged = named_fields.select("*", *tried(named_fields, conditions))
    unread = ", ".join(f"if({_field(field.name)} IS NULL, '{number}', NULL)" for number, field in enumerate(fields))
    increments, emitted = [*_increments(plan, counters)], [*_emitted(plan.rules)]
    computed = judged.select(
        *[f"{_OURS}{name}" for name in (*_PLACE, "key", "value")],
        _DOUBT,
        *tried(judged, [*increments, *emitted]),
        *[_matched(number) for number in range(len(plan.rules))],
        F.expr(_READABLE).alias("readable"),
        F.expr(f"if({_DOUBT}, concat_ws(',', {unread}), NULL)").alias("unread"),
    )
    has_failed, failed = failed_parts([*_parts(plan, counters)])
    needs_value = f"({_DOUBT} OR {has_failed})"
    return computed.selectExpr(
        *[f"{_OURS}{name} AS {name}" for name in _PLACE],
        f"{_DOUBT} AS doubt",
        "readable",
        *[f"if({needs_value}, {_OURS}{name}, NULL) AS {name}" for name in ("key", "value")],
        "unread",
        f"{failed} AS failed",
        *[each.name for each in increments],
        *[f"{each.name}.key AS {each.name}" if each.name.startswith(_KEYS) else each.name for each in emitted],
    )


def unevaluated(records: DataFrame, plan: Pipeline, counters: tuple[Counter, ...]) -> DataFrame:
    """The columns of `evaluated` for records that must not be evaluated: all are in doubt, and emit nothing."""
    columns = {value_of(number): "BINARY" for number in range(len(plan.rules))}
    columns |= {key_of(number): "BINARY" for number, rule in enumerate(plan.rules) if rule.key is not None}
    columns |= {each.name: "BIGINT" for each in _increments(plan, counters)}
    nothing = {"unread": "STRING", "failed": "STRING", **columns}
    return records.selectExpr(
        *_PLACE,
        "NOT is_end AS doubt",
        "true AS readable",
        *("key", "value"),
        *[f"cast(NULL AS {kind}) AS {name}" for name, kind in nothing.items()],
    )


def parts_of(plan: Pipeline, counters: tuple[Counter, ...]) -> tuple[str, ...]:
    """The labels of the expressions that may fail; `evaluated` gives the numbers of those that did."""
    return tuple(part.label for part in _parts(plan, counters))


def increment_of(counter: int) -> str:
    """The column of a counter that depends on fields, by its number among these."""
    return f"increment_{counter}"


def value_of(rule: int) -> str:
    """The column with the value that a rule emits."""
    return f"value_{rule}"


def key_of(rule: int) -> str:
    return f"{_KEYS}{rule}"


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


def _steps(spark: SparkSession, expressions: Iterable[str]) -> Iterator[tuple[int, int] | None]:
    """The increments for a match and for a miss; None if they depend on the record's fields, or fail."""
    parser = sql_parser(spark)
    of_truth = [[with_name(each, "matched", truth) for truth in ("true", "false")] for each in expressions]
    depends = [
        any(node.nodeName() == "UnresolvedAttribute" for node in nodes_of(parser.parseExpression(matched)))
        for matched, _ in of_truth
    ]
    constant = [text for texts, is_apart in zip(of_truth, depends, strict=True) if not is_apart for text in texts]
    # With VALUES Spark computes the row while it plans the query, and starts no job.
    attempts = [Attempt(name=f"c{number}", sql=_amount(text)) for number, text in enumerate(constant)]
    values = spark.sql("VALUES (1)")
    (row,) = values.select(F.lit(0), *tried(values, attempts)).collect()
    computed = iter(row[1:])
    for is_apart in depends:
        matched, missed = (None, None) if is_apart else (next(computed), next(computed))
        yield None if matched is None or missed is None else (matched, missed)


def _amount(expression: str) -> str:
    return f"coalesce(cast(({expression}{_END}) AS BIGINT), 0)"


def _matched(rule: int) -> str:
    return f"{_OURS}matched_{rule}"


def _emitted(rules: tuple[Rule, ...]) -> Iterator[Attempt]:
    """The values and keys that matches emit."""
    for number, rule in enumerate(rules):
        value = f"if({_matched(number)}, {_value(rule)}, NULL)"
        yield Attempt(name=value_of(number), sql=value)
        if rule.key is not None:
            # A key may be null. The struct around it is null only if the expression failed.
            key = f"named_struct('key', cast(({_of_rule(rule.key, rule)}{_END}) AS BINARY))"
            yield Attempt(name=key_of(number), sql=f"if({_matched(number)}, {key}, NULL)")


def _parts(plan: Pipeline, counters: tuple[Counter, ...]) -> Iterator[GuardedPart]:
    """The expressions that may fail, in the order of the file."""
    for number, rule in enumerate(plan.rules):
        is_match, name = _matched(number), f"rule {rule.name}"
        yield GuardedPart(label=f"{name}, when: {one_line(rule.when)}", fails=f"{is_match} IS NULL")
        # A match without a value; a condition that failed is none.
        if rule.key is not None:
            yield GuardedPart(
                label=f"{name}, key: {one_line(rule.key)}", fails=f"{is_match} AND {key_of(number)} IS NULL"
            )
        yield GuardedPart(label=f"{name}, value", fails=f"{is_match} AND {value_of(number)} IS NULL")
    for counter in counters:
        if counter.increment is not None:
            label = f"table {counter.table}, counter {counter.name!r} of rule {plan.rules[counter.rule].name}"
            yield GuardedPart(label=label, fails=f"readable AND {increment_of(counter.increment)} IS NULL")


def _value(rule: Rule) -> str:
    fields = [f"{_literal(name)}, ({_of_rule(text, rule)}{_END})" for name, text in rule.value.items()]
    # If the expression of a field is null, the field is null and is not left out.
    return f"cast(to_json(named_struct({', '.join(fields)}), map('ignoreNullFields', 'false')) AS BINARY)"


def _of_rule(expression: str, rule: Rule) -> str:
    return with_name(expression, "rule", _literal(rule.name))


def _increments(plan: Pipeline, counters: tuple[Counter, ...]) -> Iterator[Attempt]:
    """The increments of the counters that depend on fields."""
    expressions = {(table.topic, name): text for table in plan.tables for name, text in table.counters.items()}
    for counter in counters:
        if counter.increment is not None:
            is_matched = f"coalesce({_matched(counter.rule)}, false)"
            text = with_name(expressions[counter.table, counter.name], "matched", is_matched)
            amount = f"if({_READABLE}, {_amount(text)}, NULL)"
            yield Attempt(name=increment_of(counter.increment), sql=amount)


def _doubt(fields: Sequence[StructField]) -> str:
    """Whether `verdicts` must examine a record: the whole examination as SQL would be more code than Java compiles."""
    is_missing = [f"{_field(field.name)} IS NULL" for field in fields if not field.nullable]
    # Spark accepts a number where the schema says text.
    is_odd = [_may_be_no_text(field.name) for field in fields if isinstance(field.dataType, StringType)]
    # Spark ignores characters after an object, and bytes that are not UTF-8: such values are not plain.
    return " OR ".join([f"NOT {_OURS}plain", f"NOT {_READABLE}", *is_missing, *is_odd])


def _may_be_no_text(name: str) -> str:
    """Whether text in a field looks like another JSON type, and is not in quotes after the field's name."""
    value, named = _field(name), json.dumps(name, ensure_ascii=False)
    begins = [_literal(f'{named}:{space}"') for space in ("", " ")]
    is_quoted = " OR ".join(f"contains({_TEXT}, concat({begin}, {value}, '\"'))" for begin in begins)
    # Text that begins like a number sorts before the colon: a comparison is cheaper than a look at one character.
    is_like_other = f"{value} < ':' OR startswith({value}, '{{') OR startswith({value}, '[')"
    # A null field never looks like another type.
    return f"coalesce(({is_like_other} OR {value} IN ('true', 'false')) AND NOT ({is_quoted}), false)"


def _field(name: str) -> str:
    """The column of a parsed field."""
    return f"{_PARSED}.{_name(name)}"


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
