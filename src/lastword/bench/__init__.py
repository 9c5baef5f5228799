"""Benchmarks, side by side with the alternative, in one run on one machine.

Read `figures` (medians, ratios and targets), then `rounds` (how two commands take turns), then a benchmark: `load`,
`read`, `start`. What lastword is measured against is in `alternatives`. `rows` makes the input, `machine` says where
it ran, `page` writes the Markdown.
"""
