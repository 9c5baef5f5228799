"""Compacted topics in Spark: read as records or as a table, folded, and written back.

The inner rooms in reading order: `session`, `reading`, `writing`, `query`. `first_start` starts Spark once ahead of the
first query, which leaves the class archive that later starts use.
"""

from __future__ import annotations

from lastword.kafka.client.connection import Connection
from lastword.spark.reading.fold import merge, newest_per_key
from lastword.spark.reading.records import read_changes, read_records
from lastword.spark.reading.table import read_table
from lastword.spark.session.session import session
from lastword.spark.session.shutdown import stop
from lastword.spark.writing.write_table import Written, write_table

__all__ = [
    "Connection",
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
