"""Sends five updates of one key to a compacted topic. After compaction only the last one is left."""

import sys

import lastword

with lastword.connect(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092") as cluster:
    table = cluster.create_table("compacted-topic", partitions=3, value="string", exist_ok=True)
    for number in range(5):
        table.put("user1", f"update-{number}")
print("Messages sent.")
