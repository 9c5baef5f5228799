"""The benchmark `replica`: rebuild, restart and latency of a replica, beside the alternatives.

Read `benchmark` (the order of the measurements), `contenders` (who rebuilds), `process` and `latency` (lastword's side,
each a process) and `report` (figures, targets and the text of the page).
"""
