"""The store of a replica: rows, position and counts in one RocksDB, committed together.

Any thread that finds a damaged store raises StoreDamaged; the owner then rebuilds the store (`replica.owned_store`).

Read in this order: `row_layout` (bytes of a row), `identity` (which table, which format), `column_family` (no shortened
answers), `file_inventory` (which files must be there), `database` (the RocksDB), `apply_batch` (a batch of records
folded in), `position_ledger` (positions of the past), `store`.
"""
