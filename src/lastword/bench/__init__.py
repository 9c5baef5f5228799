"""Benchmarks, side by side with the alternative, in one run on one machine.

Read `figures` (medians, ratios and targets), then `rounds` (how two commands take turns), then a benchmark: `load`,
`read`, `start`, `replica`, `http`. What lastword is measured against is in `alternatives`. `rows` makes the input,
`memory` and `cpu_time` tell what a process takes, `machine` says where it ran, `page` writes the Markdown.

`replica` is in several files: `contenders` (who rebuilds, and from which topic), `kafka_streams` and `environment`
(what the alternatives need to run), `replica_process`, `replica_latency` and `paced_writer` (our side, each a
process), and `replica_report`.

So is `http`: `http_servers` (who answers), `wrk` with `point_reads.lua` (who asks), `http_freshness` and
`change_readers` (each a process), and `http_report`.
"""
