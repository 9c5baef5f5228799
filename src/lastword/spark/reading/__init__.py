"""A topic in Spark: as records and as a table; the fold.

Read in this order:

- which records: `offset_range` (a position that is captured once), `records` (the raw log, or a stream)
- a topic as a table: `table`, `partition_fold` (a partition in a dict), `packed_rows` (the bytes of a row there)
- the fold of any frame of records: `fold`
- values: `json_columns` (JSON values as columns), `json_text` (JSON made of columns)
"""
