"""Java and its jars, for Kafka and for Spark: which Java, jars locked by hash, and the class archives that make a start
quick.

Read in this order: `java`, `class_archive`, `jvm_trust_store`, `quoting`, `ivy`, `jars`.
"""
