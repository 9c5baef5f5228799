"""The verbs about rows and topics.

Read in this order: `row_writes`, `stray_keys`, `row_reads`, `topic`.
"""
