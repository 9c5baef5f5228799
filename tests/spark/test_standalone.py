"""Beyond one machine: a standalone cluster whose executors have nothing of ours but what is sent, and Python."""

from __future__ import annotations

from pathlib import Path

from lastword.api.table import Table
from lastword.kafka.client.connection import Connection
from support.canary import CANARY
from support.programs import run
from support.spark_cluster import standalone

PROGRAM = """
import os
import subprocess
from collections.abc import Iterator

import pyarrow

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from lastword.spark.session.session import session
from lastword.spark import read_changes, read_records, read_table, write_table

master, servers, topic, checkpoint = {arguments!r}
password = os.environ["PASSWORD"]
login = {{"sasl.mechanism": "PLAIN", "sasl.username": "tester", "sasl.password": password, "log_level": 3}}
connection = Connection(bootstrap_servers=servers, properties=login)
spark = session(
    connection,
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

# However small the topic is, executors read it.
print(read_table(spark, topic, driver_offsets=0).count())
written, streamed = topic + "-written", topic + "-streamed"
for name in (written, streamed):
    create_topic(connection, name, partitions=2)
print(write_table(spark.createDataFrame([("a", "1"), ("b", "2"), ("c", None)], "key string, value string"), written))
print(*sorted((row.key, row.value) for row in read_table(spark, written, driver_offsets=0).collect()))
start = ",".join(f"{{partition}}:0" for partition in connection.topic(topic).partitions)
changes = read_changes(spark, topic, after=start).selectExpr("string(key) AS key", "string(value) AS value")
query = write_table(changes, streamed, checkpoint=checkpoint, trigger={{"availableNow": True}})
query.awaitTermination()
print(read_table(spark, streamed, driver_offsets=0).count())
print(*sorted({{row.place for row in rows}}), sep="\\n")
"""


def test_executors_of_a_cluster_read_and_write_topics_with_jars_python_and_secrets_of_the_driver(
    connection: Connection, users: Table, tmp_path: Path
) -> None:
    for number in range(30):
        users.put(f"user-{number:02}", {"number": number})

    with standalone(tmp_path) as master:
        arguments = (master, connection.bootstrap_servers, users.topic, str(tmp_path / "checkpoint"))
        said = run(PROGRAM.format(arguments=arguments), {"PASSWORD": CANARY})
    keys, logins, commands, table, written, read_back, streamed, *places = said.splitlines()

    assert keys.split() == [f"user-{number:02}" for number in range(30)]
    assert logins == "True"
    # Executors run, and no command line shows the password.
    assert commands == "True False"
    assert table == "30"
    assert written == "Written(puts=2, tombstones=1, unchanged=0, against=None)"
    assert read_back == "('a', '1') ('b', '2')"
    assert streamed == "30"
    assert places
    # Each executor has a folder of its own below its worker's, and the jars in it.
    for place in map(Path, places):
        assert place.is_relative_to(tmp_path)
        assert list(place.glob("*spark-sql-kafka*.jar")) != []
