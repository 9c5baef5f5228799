"""Every rule over every record, in one pass of Spark.

Read in this order: `evaluate`, `guarding` (expressions that may fail on a record), `verdicts` (why a record is
rejected), `names_in_sql` (a name in an expression, replaced).
"""
