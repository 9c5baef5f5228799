"""A frame written to a compacted topic: encoded, checked, added or in place of what is there.

Read in this order: `encoding`, `checking`, `group_progress`, `replacing`, `sink`, `write_table`.
"""
