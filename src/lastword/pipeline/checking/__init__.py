"""The mistakes in a pipeline file: in its SQL, its schema, its topics.

Read in this order: `check` (all of it), `source_fields` (the schema), `expressions` (the SQL), `result_sizes` (results
that may be too large), `topic_check` (topics that are missing or do not compact).
"""
