"""Rules over a source topic on Spark, with their counters in compacted topics: exact after any crash.

Read in this order: `plan` (what a pipeline file says), `plan_file` (reading one, with `toml_lines`, `plan_names` and
`mistakes`), `checking` (what is wrong with one, with `source_fields`, `expressions` and `topic_check`).
"""
