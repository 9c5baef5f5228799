"""Rules over a source topic on Spark, with their counters in compacted topics: exact after any crash.

Four rooms: `plan` (the file), `checking` (mistakes in it), `evaluation` (every rule over every record),
`running` (batch after batch, exactly once).
"""
