"""A topic in Spark: as records and as a table; the fold.

Read in this order: `json_columns`, `json_text`, `offset_range`, `packed_rows`, `partition_fold`, `records`, `fold`,
`table`.
"""
