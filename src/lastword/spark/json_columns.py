"""JSON values as columns: by a schema that is given, or by all the values there are."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lastword.core.errors import BadInput

_RESERVED = ("key", "partition", "offset", "timestamp", "decode_error")
_UNREADABLE = "__unreadable"
_LIKE = "write it like  name STRING, age INT"


def as_columns(rows: DataFrame, schema: StructType | str | None) -> DataFrame:
    """`key`, a column for each field, `partition`, `offset`, `timestamp`, `decode_error`.

    A field of such a name is shown as `value_NAME`. A value that does not fit the schema has what fits of it, and
    says so in `decode_error`. A table whose values are no objects keeps its column `value`.
    """
    fields = _given(schema) if schema is not None else _inferred(rows)
    if not fields:
        return rows
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
        error.alias("decode_error"),
    )


def _field(name: str) -> Column:
    return F.col("parsed").getField(name)


def _shown_name(name: str) -> str:
    return f"value_{name}" if name.lower() in _RESERVED else name


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
    strings = getattr(objects._jdf, "as")(spark._jvm.org.apache.spark.sql.Encoders.STRING())  # type: ignore[union-attr]
    found = DataFrame(spark._jsparkSession.read().json(strings), spark).schema
    return [field for field in found if field.name != "_corrupt_record"]
