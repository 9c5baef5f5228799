"""A durable local copy of a table that follows its topic.

Two inner rooms: `store` (RocksDB) and `building` (a store from nothing). Then read in this order: `settings`, `state`,
`folder` (one owner, one whole store), `damage_log`, `owned_store`, `history_check` (whether our past still fits the
topic), `failures`, `catch_up`, `follow_session` and `following` (staying at the end), `ghost_sweep` and `expired_rows`
(deletes that nobody can read any more), `watching` with `replay` (telling others), `reads` (what others may read of
the rows), and `replica`, the Mapping that a program sees.
"""
