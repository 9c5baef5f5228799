"""A durable local copy of a table that follows its topic.

Read in this order: `layout` (bytes), `store` and `edit` (RocksDB, one commit for rows and position), `folder` (one
owner, one whole store), `building` with `fold_worker` and `newest` (a store from nothing, fast), `past` (whether our
past still fits the topic), `following` and `session` with `arrival` and `state` (staying at the end), `ghosts` (deletes
that nobody can read any more), `watching` with `replay` and `ledger` (telling others), and `replica`, the Mapping that
a program sees.
"""
