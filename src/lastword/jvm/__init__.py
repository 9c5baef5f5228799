"""Java: which one runs Kafka and Spark, the locked jars, class archives for a quick start.

Read in this order: `java` (which Java), `jars` (locked and verified; `broker.lock` and `spark.lock` list them), `ivy`
(fetches jars), `jvm_trust_store` (certificates and proxy), `class_archive`, `quoting` (a text as one quoted word).
"""
