"""The process that Spark's Python workers are forked from, with all modules loaded that they need.

    python -m lastword.spark_daemon pyspark.worker

Spark's own daemon loads almost nothing, so each worker spends two seconds on imports, and pyspark itself comes from a
zip without compiled files, whose directory every worker reads again. Spark starts this daemon if a session says so
(`spark.python.daemon.module`), on this machine only: other machines may not have lastword.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

# The modules that a worker imports itself, and those that lastword's tasks need.
_NEEDED = ("pyspark.worker", "pyarrow.compute", "lastword.spark.writing.write_table", "lastword.kafka.client.reading")


def leave_zips() -> None:
    """Imports pyspark from its folder, if the zips that Spark names are a part of that installation."""
    folder = _installed()
    zips = {place for place in sys.path if place.endswith(".zip") and folder in Path(place).parents}
    if PathFinder.find_spec("py4j", [place for place in sys.path if place not in zips]) is None:
        # Not installed, as in an unpacked Spark: its zip is the only py4j there is.
        zips = {place for place in zips if not Path(place).name.startswith("py4j-")}
    sys.path[:] = [place for place in sys.path if place not in zips]
    for place in zips:
        sys.path_importer_cache.pop(place, None)


def _installed() -> Path | None:
    """The folder of pyspark outside of a zip."""
    spec = PathFinder.find_spec("pyspark", [place for place in sys.path if not place.endswith(".zip")])
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def load() -> None:
    """Imports all modules, and starts no thread: a fork copies only its own thread, and locks that others hold.

    So pyspark's own daemon imports nothing before a fork. pyarrow's allocator would start a thread. OpenBLAS starts
    none, because Spark sets OMP_NUM_THREADS; if somebody has set more, it stops its threads before a fork.
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
