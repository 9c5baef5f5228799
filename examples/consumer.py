"""Prints what a compacted topic holds: one line for each key."""

import sys

import lastword

with lastword.connect(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092") as cluster:
    for row in cluster.table("compacted-topic", value="string").scan():
        print(f"Key: {row.key}, Value: {row.value}")
