"""The verbs on Spark: `sql`, `export`, `run`.

Read in this order: `spark_options` (shared options, and the session of a verb), `sql`, `export`, `run`.
"""
