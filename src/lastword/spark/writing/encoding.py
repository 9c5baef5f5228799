"""The rows of any frame as a table's records: keys and values as bytes, by codec, each with its problem if any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
)

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.core.nearest import did_you_mean
from lastword.core.record import NUDGE_KEY
from lastword.spark.reading.json_text import has_no_json, is_json, json_text
from lastword.spark.reading.records import HEADERS, has_headers

ColumnOrName = Column | str

UNREADABLE_KEY = "a key that is read as a schema registry's frame"
NULL_KEY, EMPTY_KEY, RESERVED_KEY = "a null key", "an empty key", f"the key {NUDGE_KEY.decode()!r}, which is reserved"


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Which columns of a frame are keys and values, and by which codecs they become bytes."""

    key: ColumnOrName = "key"
    value: ColumnOrName | Sequence[str] | None = "value"
    key_codec: str = "string"
    value_codec: str = "json"
    order: ColumnOrName | Sequence[ColumnOrName] | None = None

    def __post_init__(self) -> None:
        codec_named(self.key_codec)
        codec_named(self.value_codec)

    def encoded(self, frame: DataFrame) -> DataFrame:
        """`key`, `value`, `headers` if the frame has them, `problem` (null if there is none) and `newest`.

        `newest` is whether no row of the same key is later by the order; without an order all are.
        """
        key, value = _column(frame, self.key), self._value(frame)
        key_kind, value_kind = (field.dataType for field in frame.select(key.alias("k"), value.alias("v")).schema)
        key_bytes, key_problem = _encoded(key, key_kind, self.key_codec, "key")
        value_bytes, value_problem = _encoded(value, value_kind, self.value_codec, "value")
        problem = F.coalesce(
            F.when(key_bytes.isNull(), F.lit(NULL_KEY)),
            F.when(F.length(key_bytes) == 0, F.lit(EMPTY_KEY)),
            F.when(key_bytes == F.lit(NUDGE_KEY), F.lit(RESERVED_KEY)),
            F.when(self._is_unreadable(key_bytes) & value_bytes.isNotNull(), F.lit(UNREADABLE_KEY)),
            key_problem,
            value_problem,
        )
        order = [_column(frame, each) for each in _listed(self.order)]
        rows = frame.select(
            key_bytes.alias("key"),
            value_bytes.alias("value"),
            *([F.col(HEADERS)] if has_headers(frame) else []),
            problem.alias("problem"),
            *[each.alias(f"order_{number}") for number, each in enumerate(order)],
        )
        names = [f"order_{number}" for number in range(len(order))]
        latest_first = Window.partitionBy("key").orderBy(*map(F.desc, names)) if names else None
        # A rank and no row number: of rows that are equally late none is the last, and they are seen as two.
        newest = F.rank().over(latest_first) == 1 if latest_first is not None else F.lit(True)
        return rows.withColumn("newest", newest).drop(*names)

    def _is_unreadable(self, key: Column) -> Column:
        """Whether it is text that the codec string can't read back."""
        is_frame = (F.length(key) >= 5) & key.startswith(F.lit(b"\0"))
        return F.lit(self.key_codec == "string") & is_frame

    def _value(self, frame: DataFrame) -> Column:
        if isinstance(self.value, str | Column):
            return _column(frame, self.value)
        if self.value is None:
            if isinstance(self.key, Column):
                raise BadInput(
                    "value=None means every column except the key, so the key must be the name of a column: "
                    "add the key as a column and give its name, or name the value"
                )
            # As Spark finds the key: ID is the column id.
            besides = {self.key.lower(), HEADERS} if has_headers(frame) else {self.key.lower()}
            names = [name for name in frame.columns if name.lower() not in besides]
        else:
            names = list(self.value)
        if self.value_codec != "json":
            raise BadInput(f"several columns make a JSON object, and the value codec is {self.value_codec}: give one")
        if not names:
            raise BadInput("no column is left for the value: name one, or give value=F.lit(None) for tombstones")
        return F.struct(*[_column(frame, name) for name in names])


def _encoded(column: Column, kind: DataType, codec: str, role: str) -> tuple[Column, Column]:
    """The bytes of a column, and the problem of each value that has one."""
    fine = F.lit(None).cast("string")
    if isinstance(kind, NullType):
        return F.lit(None).cast("binary"), fine
    if codec == "bytes" and isinstance(kind, BinaryType):
        return column, fine
    if codec == "int" and isinstance(kind, ByteType | ShortType | IntegerType | LongType):
        return F.unhex(F.lpad(F.hex(column.cast("long")), 16, "0")), fine
    if codec == "string" and isinstance(kind, StringType):
        return column.cast("binary"), F.when(~F.is_valid_utf8(column), F.lit(f"a {role} that is not UTF-8 text"))
    if codec == "json" and isinstance(kind, StringType):
        readable = F.is_valid_utf8(column) & is_json(column)
        return column.cast("binary"), F.when(column.isNotNull() & ~readable, F.lit(f"a {role} that is not JSON"))
    if codec == "json":
        unwritable = has_no_json(column, kind)
        problem = fine if unwritable is None else F.when(unwritable, F.lit(f"NaN or an infinity in the {role}"))
        return json_text(column, kind).cast("binary"), problem
    takes = {"string": "text", "int": "whole numbers of up to 8 bytes", "bytes": "binary"}[codec]
    raise BadInput(
        f"the {role} is {kind.simpleString()}, and the codec {codec} takes {takes}: cast the column, "
        f"or give another codec as {role}_codec"
    )


def _column(frame: DataFrame, given: ColumnOrName) -> Column:
    if isinstance(given, Column):
        return given
    known = {name.lower() for name in frame.columns}
    if given.lower() not in known:
        hint = did_you_mean(given, frame.columns) or f"it has {', '.join(frame.columns)}"
        raise BadInput(f"the frame has no column {given!r}: {hint}")
    escaped = given.replace("`", "``")
    return F.col(f"`{escaped}`")


def _listed(order: ColumnOrName | Sequence[ColumnOrName] | None) -> list[ColumnOrName]:
    if order is None:
        return []
    return [order] if isinstance(order, str | Column) else list(order)
