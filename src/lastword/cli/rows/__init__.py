"""The verbs about rows and topics.

Read in this order: `row_writes` (put, delete, load), `row_reads` (get, scan, count, dump), `stray_keys` (warnings about
keys in unexpected partitions), `log_reads` (watch, records), `topic`.
"""
