"""Compacted topics in Spark: read as records or as a table, folded, and written back.

Read in this order: `session` (with `client_settings`, `driver`, `class_archive` and `ending`), `records`, `fold`,
`table`.
"""

from __future__ import annotations

from lastword.spark.ending import stop
from lastword.spark.session import session

__all__ = ["session", "stop"]
