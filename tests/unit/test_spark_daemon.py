"""Where the parent of Spark's workers takes pyspark from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from lastword.spark_daemon import leave_zips

INSTALLED = Path(pyspark.__file__).parent


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found = [place for place in sys.path if not place.endswith(".zip")]
    monkeypatch.setattr(sys, "path", found)
    return found


def test_zips_of_the_installed_pyspark_are_left_and_others_stay(places: list[str]) -> None:
    before = list(places)
    theirs = str(INSTALLED / "python" / "lib" / "pyspark.zip")
    users = "/somewhere/mine.zip"
    sys.path[:] = [theirs, users, *before]
    sys.path_importer_cache[theirs] = None

    leave_zips()

    assert sys.path == [users, *before]
    assert theirs not in sys.path_importer_cache


def test_zips_of_another_spark_stay(places: list[str]) -> None:
    before = list(places)
    sys.path[:] = ["/opt/spark/python/lib/pyspark.zip", *before]

    leave_zips()

    assert sys.path == ["/opt/spark/python/lib/pyspark.zip", *before]


def test_a_zip_of_py4j_stays_where_py4j_is_not_installed(places: list[str], tmp_path: Path) -> None:
    (tmp_path / "pyspark").symlink_to(INSTALLED, target_is_directory=True)
    theirs, py4j = (str(tmp_path / "pyspark" / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.1-src.zip"))
    before = list(places)

    sys.path[:] = [theirs, py4j, str(tmp_path)]
    leave_zips()
    assert sys.path == [py4j, str(tmp_path)]

    sys.path[:] = [theirs, py4j, str(tmp_path), *before]
    leave_zips()
    assert sys.path == [str(tmp_path), *before]


def test_without_an_installed_pyspark_its_zips_stay(places: list[str]) -> None:
    zips = str(INSTALLED / "python" / "lib" / "pyspark.zip")
    sys.path[:] = [zips]

    leave_zips()

    assert sys.path == [zips]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_nothing_that_is_loaded_before_a_fork_starts_a_thread() -> None:
    counted = "import os; from lastword.spark_daemon import load; load(); print(len(os.listdir('/proc/self/task')))"
    # As Spark sets it.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    made = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, env=environment, check=True)
    assert made.stdout.strip() == "1"
