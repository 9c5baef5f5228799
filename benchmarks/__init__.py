"""Benchmarks: lastword beside the alternatives, in turns, in one run on one machine.

    python -m benchmarks NAME        (the names and options: --help)

Nothing here is installed with lastword. Read `measuring` first (medians, ratios, targets, rounds), then `input` (what
is written to Kafka), then a benchmark: `commands`, `replica`, `http`, `fold`, `pipeline`. The programs that lastword is
measured against are in `alternatives`. `__main__` is the command.
"""
