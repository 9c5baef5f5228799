"""The fold of a folder of Parquet files by DuckDB: an engine without a cluster, on the same files.

python duckdb_fold.py FOLDER
"""

import json
import os
import sys
import time

import duckdb

QUERY = """
SELECT count(*), sum(newest) FROM (
  SELECT key, max("offset") AS newest, arg_max_null(value, "offset") AS value FROM read_parquet(?) GROUP BY key
) WHERE value IS NOT NULL
"""

if __name__ == "__main__":
    began = time.monotonic()
    rows, _ = duckdb.execute(QUERY, [f"{sys.argv[1]}/*.parquet"]).fetchone()
    print(json.dumps({"rows": rows, "wall": time.monotonic() - began, "cpu": sum(os.times()[:2])}))
