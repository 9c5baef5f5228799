"""Compaction on demand: the nudge, waiting for the cleaner, counting a partition, putting settings back.

Read in this order: `on_demand` (all of it, step by step), `census` (counts of a partition), `nudge` (closes the newest
segment of an idle topic), `cleaner_wait`, `journal` (settings to restore, also after a crash), `why_not_smaller`.
"""
