from __future__ import annotations

import json
from pathlib import Path

from lastword.core.home import default_home
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_description import list_topics
from support.benchmark_command import BenchmarkCommand

KAFKA = ("scan alone", "groupBy + max_by", "row_number window", "max(struct)", "lastword")
PARQUET = (*KAFKA, "Delta MERGE", "DuckDB")


def test_the_fold_is_measured_beside_every_recipe_and_all_give_the_same_rows(
    connection: Connection, tmp_path: Path
) -> None:
    # The home of whoever runs the tests: DuckDB's package is there already, as the jars are.
    line, page = BenchmarkCommand(home=default_home()), tmp_path / "page.md"
    before = {topic.name for topic in list_topics(connection)}
    done = line.run(
        *("fold", "--records", "2000", "--rounds", "1", "--json", "--write", str(page)),
        *("--bootstrap-servers", connection.bootstrap_servers),
        timeout_s=600,
    )

    # 1: nobody folds 2,000 records within its targets. Plans that disagree would end it without figures.
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    measured = {figure["what"]: figure["median"] for figure in result["figures"]}
    for size in ("0.002 M records", "0.008 M records"):
        for source, plans in (("Kafka", KAFKA), ("Parquet", PARQUET)):
            for plan in plans:
                assert measured[f"from {source}, {size}, {plan}: wall"] > 0
    assert measured["session + first table, lastword"] > 0
    assert "| session + first table, to plain settings |" in page.read_text()
    assert {topic.name for topic in list_topics(connection)} == before
