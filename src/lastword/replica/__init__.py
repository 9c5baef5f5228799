"""A durable local copy of a table that follows its topic.

Read in this order: `layout` (bytes), `store` and `edit` (RocksDB, one commit for rows and position), `folder` (one
owner, one whole store), `present` (what the topic is now, and whether our past still fits it), `building` (a store
from nothing, fast), `feed` and `following` (staying at the end), `ghosts` (deletes that nobody can read any more),
`watching`, and `replica`, the Mapping that a program sees.
"""
