"""One Spark session for the tests of this folder, on the tests' cluster. Run them in one process: each starts a JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lastword.kafka.connection import Connection
from lastword.spark import session, stop


@pytest.fixture(scope="session")
def spark(connection: Connection) -> Iterator[SparkSession]:
    made = session(
        connection,
        master="local[2]",
        # Small tables: more tasks than cores would only cost time.
        settings={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"},
    )
    yield made
    stop(made)
