"""The verbs on Spark: `sql`, `export`, `run`.

Read in this order: `spark_options`, `export`, `run`, `sql`.
"""
