"""Compaction on demand: the nudge, waiting for the cleaner, counting a partition, putting settings back.

Read in this order: `census`, `nudge`, `cleaner_wait`, `journal`, `why_not_smaller`, `on_demand`.
"""
