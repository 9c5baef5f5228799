from __future__ import annotations

import json
from pathlib import Path

from lastword.core.home import default_home
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_description import list_topics
from support.benchmark_command import BenchmarkCommand

CONTENDERS = ("lastword", "kafka-python", "confluent-kafka", "Spark's own sink", "Spark's scan and parse alone")


def test_the_pipeline_is_measured_beside_everyone_and_all_write_what_a_recount_says(
    connection: Connection, tmp_path: Path
) -> None:
    # The home of whoever runs the tests: the packages of the alternatives are there already, as the jars are.
    line, page = BenchmarkCommand(home=default_home()), tmp_path / "page.md"
    before = {topic.name for topic in list_topics(connection)}
    done = line.run(
        *("pipeline", "--records", "2000", "--rounds", "1", "--json", "--write", str(page)),
        *("--bootstrap-servers", connection.bootstrap_servers),
        timeout_s=1200,
    )

    # 1: nobody judges 2,000 users within its targets. Results that differ would end it without figures.
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    measured = {figure["what"]: figure["median"] for figure in result["figures"]}
    for who in CONTENDERS:
        assert measured[f"throughput, {who}"] > 0
        assert measured[f"whole process, {who}: wall"] > 0
    for what in ("100 users/s, to the action: p50", "100 users/s, to the counters over HTTP: p99"):
        assert measured[what] > 0
    assert measured["100 users/s, a batch"] > 0
    assert 0 < measured["kill -9 to the takeover"] < measured["kill -9 to the first new commit"]
    assert "| throughput, lastword to kafka-python |" in page.read_text()
    assert {topic.name for topic in list_topics(connection)} - before <= {"__consumer_offsets", "__transaction_state"}
