"""Benchmarks of single commands, each against the shortest program that does the same.

`load` is `lastword load`, `read` is `lastword dump`, `start` is `lastword --help` and the start of a broker.
"""
