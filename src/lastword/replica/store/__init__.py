"""The store of a replica: rows, position and counts in one RocksDB, committed together.

Read in this order: `column_family`, `file_inventory`, `listing`, `position_ledger`, `row_layout`, `apply_batch`,
`store`.
"""
