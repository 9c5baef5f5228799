"""Rows of any types as text: JSON lines, CSV, and the cells of a printed table. Rows are streamed, never collected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampType,
    VariantType,
)

from lastword.core.errors import BadInput
from lastword.spark.session.failures import one_line_failures

# As every other verb shows a record's time.
FOR_PEOPLE = "yyyy-MM-dd HH:mm:ss.SSS"
# ISO 8601, with the session's zone: Z for UTC.
FOR_PROGRAMS = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"

_NESTED = (ArrayType, MapType, StructType, VariantType)
_NEEDS_QUOTES = re.compile(r'[",\r\n]')


def json_lines(rows: DataFrame, at_most: int | None = None) -> Generator[str, None, None]:
    """Each row as an object, a field for each column: nested ones nested, times in integer ms, bytes in base64."""
    for name, count in Counter(rows.columns).items():
        if count > 1:
            raise BadInput(f"the query: {count} columns are named {name}, and JSON takes one: name them with AS")
    places = _placed(rows)
    fields = [
        in_json(F.col(place), column.dataType).alias(column.name)
        for place, column in zip(places.columns, rows.schema, strict=True)
    ]
    line = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
    for (text,) in _streamed(places.select(line), at_most):
        yield str(text)


def csv_lines(rows: DataFrame, at_most: int | None = None) -> Generator[str, None, None]:
    """A header, then each row, as in RFC 4180, without the line ends: null is nothing, the empty text is `""`."""
    yield ",".join(map(_csv_field, rows.columns))
    for cells in _streamed(flat(rows, FOR_PROGRAMS), at_most):
        yield ",".join(map(_csv_field, cells))


def first_cells(rows: DataFrame, at_most: int) -> list[tuple[str | None, ...]]:
    """The first rows, each value as a person reads it."""
    return list(_streamed(flat(rows, FOR_PEOPLE), at_most))


def flat(rows: DataFrame, time_format: str) -> DataFrame:
    """The rows with every value as text: nested values as JSON, bytes in base64, times in the given form."""
    places = _placed(rows)
    texts = [
        _text(F.col(place), column.dataType, time_format).alias(column.name)
        for place, column in zip(places.columns, rows.schema, strict=True)
    ]
    return places.select(*texts)


def in_json(value: Column, kind: DataType) -> Column:
    """The value as `to_json` should get it: times as integer ms since 1970, as everywhere in lastword's JSON."""
    if not _has_time(kind):
        return value
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda each: in_json(each, element))
    if isinstance(kind, MapType):
        inner = kind.valueType
        return F.transform_values(value, lambda _, each: in_json(each, inner))
    if isinstance(kind, StructType):
        fields = [in_json(value.getField(each.name), each.dataType).alias(each.name) for each in kind]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.unix_millis(value)


def _has_time(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_time(kind.elementType)
    if isinstance(kind, MapType):
        return _has_time(kind.valueType)
    if isinstance(kind, StructType):
        return any(_has_time(each.dataType) for each in kind)
    return isinstance(kind, TimestampType)


def _text(value: Column, kind: DataType, time_format: str) -> Column:
    if isinstance(kind, TimestampType):
        return F.date_format(value, time_format)
    if isinstance(kind, BinaryType):
        return F.base64(value)
    if isinstance(kind, _NESTED):
        return F.to_json(in_json(value, kind), {"ignoreNullFields": "false"})
    return value.cast("string")


def _placed(rows: DataFrame) -> DataFrame:
    """The rows with columns named by their place: a query may give two the same name."""
    return rows.toDF(*[f"c{index}" for index in range(len(rows.columns))])


def _streamed(rows: DataFrame, at_most: int | None) -> Iterator[tuple[str | None, ...]]:
    with one_line_failures("the query"):
        if at_most is not None:
            # A limit that is known to Spark ends the work early, in as few tasks as it takes.
            yield from rows.limit(at_most).collect()
        else:
            # One partition at a time in memory, and the next one computed meanwhile.
            yield from rows.toLocalIterator(prefetchPartitions=True)


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    return '"' + text.replace('"', '""') + '"' if not text or _NEEDS_QUOTES.search(text) else text
