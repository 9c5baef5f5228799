"""Kafka, in four rooms: `client` reads and writes, `topics` knows what topics are, `compaction` compacts one now,
`broker` runs a local cluster.
"""
