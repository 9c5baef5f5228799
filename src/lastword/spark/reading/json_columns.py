"""JSON values as columns: by a given schema, or by a schema that is inferred from all values."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lastword.core.errors import BadInput
from lastword.spark.session.pyspark_private import analysed_plan, java_frame, java_session, jvm_of, set_active

_RESERVED = ("key", "partition", "offset", "timestamp", "headers", "decode_error")
_UNREADABLE = "__unreadable"
_LIKE = "write it like  name STRING, age INT"


def as_columns(rows: DataFrame, schema: StructType | str | None) -> DataFrame:
    """`key`, a column for each field, `partition`, `offset`, `timestamp`, `headers`, `decode_error`.

    A field with one of these names becomes `value_NAME`; BadInput names two fields that would be one column. A value
    that does not fit the schema has the fields that fit, and a `decode_error`. A table whose values are no objects
    keeps its column `value`.
    """
    fields = _given(schema) if schema is not None else _inferred(rows)
    if not fields:
        return rows
    case_sensitive = rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    _refuse_lookalikes(fields, "schema has" if schema is not None else "values have", case_sensitive=case_sensitive)
    typed = StructType([*fields, StructField(_UNREADABLE, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREADABLE}
    parsed = rows.withColumn("parsed", F.from_json("value", typed, options))
    misfit = F.col("value").isNotNull() & F.col(f"parsed.{_UNREADABLE}").isNotNull()
    error = F.coalesce(F.col("decode_error"), F.when(misfit, F.lit("value: does not fit the columns' types")))
    return parsed.select(
        "key",
        *[_field(field.name).alias(_shown_name(field.name)) for field in fields],
        "partition",
        "offset",
        "timestamp",
        "headers",
        error.alias("decode_error"),
    )


def _field(name: str) -> Column:
    return F.col("parsed").getField(name)


def _shown_name(name: str) -> str:
    return f"value_{name}" if name.lower() in _RESERVED else name


def _refuse_lookalikes(fields: list[StructField], holder: str, *, case_sensitive: bool) -> None:
    """BadInput for two fields that Spark would take for one column: a value of one of them would be lost."""
    known: dict[str, str] = {}
    for name in (field.name for field in fields):
        shown = _shown_name(name) if case_sensitive else _shown_name(name).lower()
        if shown in known:
            both = f"the field {name} twice" if known[shown] == name else f"the fields {known[shown]} and {name}"
            raise BadInput(
                f"the {holder} {both}, which Spark's columns can't tell apart: give a schema with one of them, "
                "or read without columns"
            )
        known[shown] = name


def _given(schema: StructType | str) -> list[StructField]:
    if isinstance(schema, StructType):
        return list(schema)
    try:
        parsed = DataType.fromDDL(schema)
    except ParseException as failure:
        reason = str(failure).strip().splitlines()[0]
        raise BadInput(f"schema {schema!r}: {reason}: {_LIKE}") from None
    if not isinstance(parsed, StructType):
        raise BadInput(f"schema {schema!r}: {parsed.simpleString()} is no list of columns: {_LIKE}")
    return list(parsed)


def _inferred(rows: DataFrame) -> list[StructField]:
    """The fields of all values that are objects, in the order of their names."""
    spark = rows.sparkSession
    objects = rows.where(F.ltrim("value").startswith("{")).select("value")
    # In another session, where Name and name are two fields: otherwise Spark silently drops one of them.
    exact = java_session(spark).cloneSession()
    exact.conf().set("spark.sql.caseSensitive", True)
    jvm = jvm_of(spark)
    values = java_frame(exact, analysed_plan(objects), jvm)
    strings = getattr(values, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    # Spark merges the schemas of the tasks by the settings of the active session.
    set_active(spark, exact)
    try:
        schema = DataFrame(exact.read().json(strings), spark).schema
    finally:
        set_active(spark)
    return [field for field in schema if field.name != "_corrupt_record"]
