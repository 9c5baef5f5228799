"""Rows that a table can't take are refused before the first record is written, with their number and a sample."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput, DecodeError
from lastword.spark.writing.encoding import EMPTY_KEY, NULL_KEY, RESERVED_KEY

_SHOWN = 3
_SHOWN_CHARACTERS = 60
# Problems that the key itself does not show.
_BY_VALUE = (NULL_KEY, EMPTY_KEY, RESERVED_KEY)


@dataclass(frozen=True, kw_only=True)
class Counts:
    puts: int
    tombstones: int


def counted(rows: DataFrame, topic: str, key_codec: str) -> Counts:
    """How many records the encoded rows make; BadInput when one of them can't be a row, or a key comes twice."""
    by_key = rows.groupBy("key").agg(
        F.count_if("newest").alias("rows"),
        F.count_if(F.col("newest") & F.col("value").isNull()).alias("tombstones"),
        F.count("problem").alias("faulty"),
    )
    # In one pass: in a stream this check runs for every batch.
    totals = by_key.agg(
        F.sum("rows").alias("rows"),
        F.sum("tombstones").alias("tombstones"),
        F.sum("faulty").alias("faulty"),
        F.count_if(F.col("rows") > 1).alias("repeated"),
    ).head()
    if totals is None or totals["rows"] is None:
        return Counts(puts=0, tombstones=0)
    if totals["faulty"]:
        raise BadInput(f"{topic}: {_faults(rows, key_codec)}: put that right; nothing was written")
    if totals["repeated"]:
        sample = by_key.where(F.col("rows") > 1).orderBy("key").limit(_SHOWN).collect()
        keys = ", ".join(f"{_key(row['key'], key_codec)} {row['rows']} times" for row in sample)
        raise BadInput(
            f"{topic}: {_keys(totals['repeated'])} more than once ({keys}), and which row is the last word is not "
            "known: keep one of each, or name the column that says it as order; nothing was written"
        )
    return Counts(puts=totals["rows"] - totals["tombstones"], tombstones=totals["tombstones"])


def _faults(rows: DataFrame, key_codec: str) -> str:
    faulty = rows.where(F.col("problem").isNotNull())
    faults = []
    for kind in faulty.groupBy("problem").count().orderBy("problem").collect():
        sample = faulty.where(F.col("problem") == kind["problem"]).select("key", "value").limit(_SHOWN).collect()
        samples = ", ".join(_row(row, kind["problem"], key_codec) for row in sample)
        faults.append(f"{kind['count']} {'row' if kind['count'] == 1 else 'rows'} with {kind['problem']} ({samples})")
    return "; ".join(faults)


def _row(row: Row, problem: str, key_codec: str) -> str:
    value = "tombstone" if row["value"] is None else _shortened(bytes(row["value"]))
    return f"value {value}" if problem in _BY_VALUE else f"key {_key(row['key'], key_codec)}, value {value}"


def _keys(number: int) -> str:
    return "1 key comes" if number == 1 else f"{number} keys come"


def _key(raw: bytes, codec: str) -> str:
    try:
        text = codec_named(codec).to_json(bytes(raw)).decode()
    except DecodeError:
        return _shortened(bytes(raw))
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _shortened(raw: bytes) -> str:
    text = raw.decode(errors="backslashreplace")
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "...")
