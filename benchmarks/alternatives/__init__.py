"""The programs that lastword is measured against: each file is one program, short enough to check by reading it.

On librdkafka: `bare_produce`, `bare_consume` and `write_batches`. In an environment of their own, which `environment`
makes: `kafka_python_dict`, `quix_state`, `fastapi_dict`, `duckdb_fold` and `rules_loop`. In Java, compiled by
`kafka_streams`: `KafkaStreamsRestore.java`.
"""
