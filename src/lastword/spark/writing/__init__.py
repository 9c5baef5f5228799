"""A frame written to a compacted topic: encoded, checked, added or in place of what is there.

Read in this order: `write_table` (once, or as a stream), `encoding` (rows as keys and values), `checking` (rows that
a table can't take), `replacing` (the differences to a table), `sink` (Kafka's Java producer), `group_progress` (of a
stream, as a consumer group).
"""
