"""Topics: making and changing them, their settings and sizes, what a topic is right now, where a key lives.

Read in this order: `log_dirs`, `offsets_for_time`, `setting_kinds`, `settings_table`, `cleaner_settings`,
`stray_keys`, `topic_names`, `topic_description`, `cluster_description`, `topic_scan`, `topic_settings`,
`topic_changes`, `topic_snapshot`.
"""
