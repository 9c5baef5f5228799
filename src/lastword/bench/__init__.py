"""Benchmarks, side by side with the alternative, in one run on one machine.

Read `figures` (medians, ratios and targets), then `rounds` (how two commands take turns), then a benchmark: `load`,
`read`, `start`, `replica`, `http`, `fold`, `pipeline`. What lastword is measured against is in `alternatives`. `rows`
makes the input, `memory` and `cpu_time` tell what a process takes, `background` has those that run beside a
measurement, `machine` says where it ran, `page` writes the Markdown.

`replica` is in several files: `contenders` (who rebuilds, and from which topic), `kafka_streams` and `environment`
(what the alternatives need to run), `replica_process`, `replica_latency` and `paced_writer` (our side, each a
process), and `replica_report`.

So is `http`: `http_servers` (who answers), `wrk` with `point_reads.lua` (who asks), `http_freshness` and
`change_readers` (each a process), and `http_report`.

And `pipeline`: `pipeline_topics` (its users, topics and file, and the recount that every contender must meet),
`pipeline_process` and `pipeline_spark` (our side, and what Spark brings itself, each a process), `pipeline_latency` (a
process) with `pipeline_costs`, `pipeline_recovery`, and `pipeline_report`.
"""
