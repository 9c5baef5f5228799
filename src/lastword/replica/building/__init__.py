"""A store from nothing, fast: worker processes fold the partitions into sorted files.

Read in this order: `long_work`, `newest_rows`, `fold_worker`, `rebuild`.
"""
