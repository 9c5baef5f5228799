"""Everything that is wrong with a pipeline file: its SQL, its schema, its topics.

Read in this order: `result_sizes`, `source_fields`, `expressions`, `topic_check`, `check`.
"""
