"""Whether two servers serve the same rows, also while they are written to.

Read in this order: `row_consistency`, `remote_table`, `key_order_merge`, `two_servers`.
"""
