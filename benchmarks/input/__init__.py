"""The input of the benchmarks: the same records for every contender.

Read `rows` (the values), `topics` (empty and filled ones) and `paced_writer` (a process that writes at a steady rate).
"""
