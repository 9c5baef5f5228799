"""Every rule over every record, in one pass of Spark.

Read in this order: `guarding`, `names_in_sql`, `verdicts`, `evaluate`.
"""
