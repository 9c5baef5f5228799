"""The benchmark `pipeline`: throughput beside the alternatives, latency and its parts, and recovery after a kill.

Read `benchmark` (the order of the measurements), `topics` (users, topics, the pipeline file, and the recount that every
contender must match), `process` (lastword's side) and `spark_alone` (Spark without lastword), then `latency` with
`costs`, `recovery`, and `report` (figures, targets and the text of the page).
"""
