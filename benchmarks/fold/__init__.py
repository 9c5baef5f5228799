"""The benchmark `fold`: the fold in Spark beside the usual recipes, its growth, and the start of a session.

Read `benchmark` (the order of the measurements, and the report), `names` and `recipes` (the ways to fold), `process`
(all of them in one Spark session) and `spark_start` (from nothing to the first rows).
"""
