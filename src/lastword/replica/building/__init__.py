"""A store from nothing, fast: workers fold the partitions into sorted runs, and merge these by ranges of keys.

Read in this order: `long_work` (pace and stop), `newest_rows` (newest per key in memory), `sorted_runs` (rows that
moved to the disk), `fold` (one worker's share of reading), `key_ranges` (how keys are divided), `merge` (one worker's
share of the merge), `tasks` (what owner and workers send each other), `worker` (the process), `worker_pool` (the
owner's side), `rebuild` (the steps, and the store made of their files).
"""
