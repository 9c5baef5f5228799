"""The names of the ways to fold records in Spark. They are not in `recipes`, which needs pyspark."""

from __future__ import annotations

OURS = "lastword"
SCAN = "scan alone"
MAX_BY = "groupBy + max_by"
ROW_NUMBER = "row_number window"
MAX_STRUCT = "max(struct)"
DELTA_MERGE = "Delta MERGE"

RECIPE_NAMES = (MAX_BY, ROW_NUMBER, MAX_STRUCT, DELTA_MERGE)
