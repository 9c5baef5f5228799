"""Compacted topics in Spark: read as records or as a table, folded, and written back.

Read in this order: `session` (with `settings`, `client_settings`, `driver` and `ending`), `span`
(which part of a log is read), `records`, `fold` (the law on any records), `table` (with `partition_fold`, the fast way
from Kafka, and `json_columns`), `writing` (with `encoding`, `json_text`, `checking`, `replacing`, `sink` and
`progress`).
"""

from __future__ import annotations

from lastword.spark.reading.fold import merge, newest_per_key
from lastword.spark.reading.records import read_changes, read_records
from lastword.spark.reading.table import read_table
from lastword.spark.session.session import session
from lastword.spark.session.shutdown import stop
from lastword.spark.writing.write_table import Written, write_table

__all__ = [
    "Written",
    "merge",
    "newest_per_key",
    "read_changes",
    "read_records",
    "read_table",
    "session",
    "stop",
    "write_table",
]
