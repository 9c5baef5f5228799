"""What a program sees: `local()`, `connect()`, `Cluster` and `Table`.

Read in this order: `table`, `cluster`.
"""
