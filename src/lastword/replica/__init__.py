"""A durable local copy of a table that follows its topic.

Inner rooms: `store` (the rows in RocksDB) and `building` (a rebuild by worker processes). Then read in this order:

- `settings`, `state` (connecting, catching-up, ready, rebuilding, failed), `folder` (one owner, one whole store);
- `owned_store` (opening, rebuilding, setting a damaged store aside), `damage_log` (when stores were damaged);
- `following` (the thread), `follow_session` (reading on at the topic's end), `catch_up` (until ready), `history_check`
  (was the topic recreated or truncated), `failures` (retries and their words);
- `ghost_sweep` (rows whose tombstone is gone), `expired_rows` (rows whose records have left the log);
- `watching` (watchers, and how slow ones are cut off), `replay` (changes that a watcher missed);
- `reads` (what other rooms may read of the rows), `replica` (the Mapping that a program sees).
"""
