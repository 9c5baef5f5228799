"""Measuring: what a benchmark is asked to do, how commands take turns, and how the result is shown.

Read `plan` (records, rounds, the cluster), `commands` (the processes that a benchmark starts, and their environment)
and `rounds` (how they take turns). `background` runs a process beside a measurement. `memory` and `cpu_time` measure
what a process uses. `figures` has medians, ratios and targets; `page` writes them as Markdown, with `machine`, which
says where the benchmark ran.
"""
