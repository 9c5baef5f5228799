"""JSON as text in Spark: JSON made of columns, and the check whether a text is JSON."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

_WRITING = {
    # A field that is null is kept: without it the JSON would say that there is no such field.
    "ignoreNullFields": "false",
    # With all digits of a timestamp of Spark: by default its microseconds are cut off.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
# By default Spark takes more for JSON than other readers do.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
# One half of a surrogate pair: Spark's parser takes it, but it is no valid text.
_HALVES = (
    r"(?<!\\)(\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])",
    r"(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(\\\\)*\\u[dD][c-fC-F]",
)
# Spark finds out about others, like GEOMETRY, only when it meets a value.
_KINDS = (
    BooleanType,
    NumericType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
    CalendarIntervalType,
    DayTimeIntervalType,
    YearMonthIntervalType,
    VariantType,
    NullType,
)


def json_text(column: Column, kind: DataType) -> Column:
    """The JSON of a column of any type but text; null where it is null."""
    if isinstance(kind, ArrayType | MapType | StructType | VariantType):
        return F.to_json(column, _WRITING)
    # As the one element of an array, because Spark makes no JSON of a number or a boolean alone.
    listed = F.to_json(F.array(column), _WRITING)
    return F.when(column.isNotNull(), F.substring(listed, F.lit(2), F.length(listed) - 2))


def is_json(text: Column) -> Column:
    """Whether a text is one JSON value, as every other writer of a table has it; a null is none."""
    # Spark reads one value and ignores what follows. Only one whole value fits both into an array and into an object:
    # a text that closes or continues one of them breaks the other.
    element = F.from_json(F.concat(F.lit("["), text, F.lit("]")), "array<string>", _STRICT)
    field = F.from_json(F.concat(F.lit('{"a":'), text, F.lit("}")), "map<string,string>", _STRICT)
    halves = F.lit(False)
    for half in _HALVES:
        halves = halves | text.rlike(half)
    return element.isNotNull() & field.isNotNull() & ~halves


def is_json_kind(kind: DataType) -> bool:
    """Whether Spark reads and writes values of a type as JSON, at any depth."""
    if isinstance(kind, ArrayType):
        return is_json_kind(kind.elementType)
    if isinstance(kind, MapType):
        return is_json_kind(kind.keyType) and is_json_kind(kind.valueType)
    if isinstance(kind, StructType):
        return all(is_json_kind(field.dataType) for field in kind)
    return isinstance(kind, _KINDS)


def has_no_json(column: Column, kind: DataType) -> Column | None:
    """Whether a column holds a NaN or an infinity, at any depth; None for a type that can't."""
    if isinstance(kind, FloatType | DoubleType):
        return F.isnan(column) | (F.abs(column) == F.lit(float("inf")))
    if isinstance(kind, ArrayType):
        return _any_of(column, kind.elementType)
    if isinstance(kind, MapType):
        return _any_of(F.map_values(column), kind.valueType)
    if isinstance(kind, StructType):
        inner = [has_no_json(column.getField(field.name), field.dataType) for field in kind]
        checks = [F.coalesce(each, F.lit(False)) for each in inner if each is not None]
        return F.greatest(F.lit(False), *checks) if checks else None
    return None


def _any_of(elements: Column, kind: DataType) -> Column | None:
    if has_no_json(F.lit(None), kind) is None:
        return None

    def is_unwritable(element: Column) -> Column:
        inner = has_no_json(element, kind)
        return F.lit(False) if inner is None else F.coalesce(inner, F.lit(False))

    return F.exists(elements, is_unwritable)
