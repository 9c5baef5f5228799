"""The Spark session: its settings, its JVM, its end, and its errors as one line.

Read in this order: `client_settings`, `driver`, `failures`, `jvm_errors`, `settings`,
`pyspark_private` (all that is private in PySpark), `catalyst` (trees), `shutdown`, `session`.
"""
