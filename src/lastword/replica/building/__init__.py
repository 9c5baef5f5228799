"""A store from nothing, fast: worker processes fold the partitions into sorted files.

Read in this order: `long_work` (pace and stop), `newest_rows` (newest per key, in memory and on disk), `fold_worker` (a
worker process), `rebuild` (jobs, workers, and the store made of their files).
"""
