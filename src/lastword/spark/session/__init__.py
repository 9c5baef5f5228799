"""The Spark session: its settings, its JVM, its end, and its errors as one line.

Read in this order:

- the start: `session`, `settings` (Spark's), `client_settings` (librdkafka's for the Java client), `driver` (the JVM's
  options, environment and class archive), `jvm_errors` (why a start failed)
- the end: `shutdown` (of the session and its JVM, also after Ctrl-C)
- `failures` (errors of Spark as one line), `pyspark_private` (all that is private in PySpark), `catalyst` (plan trees)
"""
