"""Rules over a source topic on Spark, with their counters in compacted topics: exact after any crash.

Read in this order: `plan` (what a pipeline file says), `plan_file` (reading one, with `toml_lines`, `plan_names` and
`mistakes`), `checking` (what is wrong with one, with `source_fields`, `expressions`, `sizes` and `topic_check`).

Then how one runs: `running` (the driver, with `takeover`, `log_ends`, `topics`, `kept_tables`, `standing` and
`reporting`), and what a batch goes through: `batch_frames`, `source`, `evaluation` (with `names_in_sql`,
`guarding`), `task` (with `portion`, `outlet`, `verdicts` and `progress`).
`isolation` finds a record that fails a batch.
"""
