"""Topics: making and changing them, their settings and sizes, what a topic is right now, where a key lives.

Read in this order:

- `topic_names`, `cleanup_policy`, `topic_description` (one topic), `cluster_description` (brokers and all topics)
- `topic_snapshot` (identity and ends at one moment), `log_dirs` (sizes on disk), `offsets_for_time`
- settings: `setting_kinds`, `settings_table` (of topics), `cleaner_settings` (of brokers), `topic_settings` (checks)
- `topic_changes` (create, alter, delete)
- keys: `stray_keys` (outside the partition of murmur2), `topic_scan` (counts of a whole log)
"""
