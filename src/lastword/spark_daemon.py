"""The process that Spark's Python workers are forked from, with all loaded that they need.

    python -m lastword.spark_daemon pyspark.worker

Spark's own loads next to nothing, so that each worker spends two seconds on imports, and pyspark itself comes from a
zip without compiled files, whose directory every worker reads again. Spark starts this one where a session says so
(`spark.python.daemon.module`), on this machine only: elsewhere nobody knows what is installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

# What a worker imports itself, and what tasks of ours need.
_NEEDED = ("pyspark.worker", "pyarrow.compute", "lastword.spark.writing.write_table", "lastword.kafka.client.reading")


def leave_zips() -> None:
    """Takes pyspark as it is installed, where the zips that Spark names are a part of that."""
    folder = _installed()
    zips = {place for place in sys.path if place.endswith(".zip") and folder in Path(place).parents}
    if PathFinder.find_spec("py4j", [place for place in sys.path if place not in zips]) is None:
        # Not installed beside it, as in a Spark that was unpacked: its zip is the only one there is.
        zips = {place for place in zips if not Path(place).name.startswith("py4j-")}
    sys.path[:] = [place for place in sys.path if place not in zips]
    for place in zips:
        sys.path_importer_cache.pop(place, None)


def _installed() -> Path | None:
    """The folder of the pyspark that is no zip's."""
    found = PathFinder.find_spec("pyspark", [place for place in sys.path if not place.endswith(".zip")])
    return None if found is None or found.origin is None else Path(found.origin).parent


def load() -> None:
    """Imports it all, without a thread: a fork takes only the one that forks, and locks as the others hold them.

    So pyspark's own daemon imports nothing before a fork. pyarrow's allocator would start one; OpenBLAS starts none,
    because Spark sets OMP_NUM_THREADS, and stops its own before a fork where somebody has set more.
    """
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    for module in _NEEDED:
        importlib.import_module(module)


def main() -> None:
    leave_zips()
    load()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
