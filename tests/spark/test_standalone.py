"""Beyond one machine: a standalone cluster whose executors have nothing of ours but what is sent, and Python."""

from __future__ import annotations

from pathlib import Path

from lastword.kafka.connection import Connection
from lastword.table import Table
from support.canary import CANARY
from support.programs import run
from support.standalone import standalone

PROGRAM = """
import os
import subprocess
from collections.abc import Iterator

import pyarrow

from lastword.kafka.connection import Connection
from lastword.spark import read_records, session

master, servers, topic = {arguments!r}
password = os.environ["PASSWORD"]
login = {{"sasl.mechanism": "PLAIN", "sasl.username": "tester", "sasl.password": password, "log_level": 3}}
spark = session(
    Connection(bootstrap_servers=servers, properties=login),
    master=master,
    settings={{"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2"}},
)


def seen(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    from lastword.core.codecs import codec_named

    for batch in batches:
        keys = [codec_named("string").decode(key) for key in batch.column("key").to_pylist()]
        place = [os.getcwd()] * len(keys)
        login = [os.environ["LASTWORD_SECRET_SASL_JAAS_CONFIG"]] * len(keys)
        yield pyarrow.RecordBatch.from_pydict({{"key": keys, "place": place, "login": login}})


rows = read_records(spark, topic).select("key").mapInArrow(seen, "key string, place string, login string").collect()
commands = subprocess.run(["ps", "-axww", "-o", "args="], capture_output=True, text=True).stdout
print(*sorted(row.key for row in rows))
print(all(password in row.login for row in rows))
print("CoarseGrainedExecutorBackend" in commands, password in commands)
print(*sorted({{row.place for row in rows}}), sep="\\n")
"""


def test_a_topic_is_read_by_executors_that_fetch_the_jars_import_lastword_and_have_the_secrets(
    connection: Connection, users: Table, tmp_path: Path
) -> None:
    for number in range(30):
        users.put(f"user-{number:02}", {"number": number})

    with standalone(tmp_path) as master:
        program = PROGRAM.format(arguments=(master, connection.bootstrap_servers, users.topic))
        keys, logins, commands, *places = run(program, {"PASSWORD": CANARY}).splitlines()

    assert keys.split() == [f"user-{number:02}" for number in range(30)]
    assert logins == "True"
    # Executors run, and no command line shows the password.
    assert commands == "True False"
    assert places
    # Each executor has a folder of its own below its worker's, and the jars in it.
    for place in map(Path, places):
        assert place.is_relative_to(tmp_path)
        assert list(place.glob("*spark-sql-kafka*.jar")) != []
