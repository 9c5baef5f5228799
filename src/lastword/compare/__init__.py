"""Whether two servers serve the same rows, also while they are written to.

Read in this order: `row_consistency` (can two answers about a key both be right), `remote_table` (a table at a server),
`key_order_merge` (two tables side by side), `two_servers` (all tables of two servers).
"""
