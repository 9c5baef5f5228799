"""Each benchmark runs and gives its figures; how fast it was is nobody's test."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from benchmarks.alternatives import bare_consume, bare_produce
from benchmarks.alternatives.environment import python_of_alternatives
from benchmarks.alternatives.kafka_streams import compiled_streams
from benchmarks.input.topics import FilledTopic, updated_topic
from benchmarks.measuring.plan import Plan
from benchmarks.replica.contenders import Contenders
from lastword.core.errors import LastwordError
from lastword.core.home import default_home
from lastword.core.row_json import Write
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import load
from lastword.kafka.client.reading import fold_topic
from lastword.kafka.topics.topic_changes import create_topic
from lastword.kafka.topics.topic_description import list_topics
from support.benchmark_command import BenchmarkCommand
from support.command_line import JARS
from support.load_tools import why_missing
from support.processes import running_with
from support.waiting import eventually

# A benchmark is for clusters that are open.
pytestmark = pytest.mark.open


@pytest.fixture
def command(tmp_path: Path) -> BenchmarkCommand:
    return BenchmarkCommand(home=tmp_path / "home")


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        (
            "load",
            [
                "lastword load, whole process",
                "bare produce loop, whole process",
                "lastword load, sending",
                "bare produce loop, sending",
            ],
        ),
        (
            "read",
            ["lastword dump, whole process", "bare consume loop, whole process", "bare consume loop, consuming"],
        ),
    ],
)
def test_a_benchmark_gives_its_figures_and_deletes_its_topics(
    command: BenchmarkCommand, connection: Connection, tmp_path: Path, name: str, figures: list[str]
) -> None:
    page = tmp_path / "page.md"
    servers = connection.bootstrap_servers
    done = command.run(
        *(name, "--records", "2000", "--rounds", "1", "--json", "--write", str(page)),
        *("--bootstrap-servers", servers),
    )
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert [figure["what"] for figure in result["figures"]] == figures
    assert all(figure["median"] > 0 and len(figure["rounds"]) == 1 for figure in result["figures"])
    assert (done.returncode == 0) is result["met"]
    assert f"`python -m benchmarks {name} --records 2000 --rounds 1 --bootstrap-servers HOST:PORT`" in page.read_text()
    assert servers not in page.read_text()
    assert not [topic.name for topic in list_topics(connection) if topic.name.startswith("bench-")]


@pytest.mark.long
def test_without_an_address_a_benchmark_has_a_cluster_of_its_own(command: BenchmarkCommand) -> None:
    done = command.run("read", "--records", "2000", "--rounds", "1", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["command"] == "python -m benchmarks read --records 2000 --rounds 1"
    assert not (command.home / "clusters").exists()


def test_a_benchmark_that_is_terminated_leaves_no_folder(command: BenchmarkCommand, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    line = replace(command, environ={"TMPDIR": str(folder)})
    with line.start("read", "--records", "3000000", stderr=subprocess.PIPE) as started:
        eventually(lambda: any(folder.glob("*/rows.tsv")))
        started.terminate()
        started.communicate(timeout=60)
    assert started.returncode == 130
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_start_times_the_command_line_and_a_broker_cold_and_warm(command: BenchmarkCommand) -> None:
    done = command.run("start", "--rounds", "1", "--json")
    assert done.returncode in (0, 1), done.stderr
    figures = {figure["what"]: len(figure["rounds"]) for figure in json.loads(done.stdout)["figures"]}
    assert figures == {"lastword --help": 4, "python -c pass": 4, "broker ready, cold": 1, "broker ready, warm": 1}


@pytest.fixture(scope="module")
def filled(connection: Connection) -> Iterator[FilledTopic]:
    with updated_topic(connection, 2000) as topic:
        yield topic


@pytest.fixture
def contenders(tmp_path: Path) -> Contenders:
    return Contenders(home=tmp_path)


@pytest.fixture
def plan() -> Plan:
    return Plan(records=2000, rounds=1, home=default_home(), jars=JARS, report=lambda _: None)


def test_the_topic_of_a_rebuild_has_the_records_and_rows_it_says(filled: FilledTopic) -> None:
    folded = fold_topic(filled.connection, filled.topic)
    assert len(folded.rows) == filled.rows
    assert 190 < filled.rows <= 200


def test_the_loops_take_every_record_and_leave_nothing(filled: FilledTopic, contenders: Contenders) -> None:
    assert contenders.bare_loop(filled).answer["records"] == 2000
    assert contenders.write_batches(filled).answer["rows"] == filled.rows
    assert list(contenders.home.iterdir()) == []


def test_a_contender_without_all_the_rows_is_refused(filled: FilledTopic, contenders: Contenders) -> None:
    with pytest.raises(LastwordError, match="WriteBatch loop has"):
        contenders.write_batches(replace(filled, rows=filled.rows + 1))


@pytest.mark.long
def test_kafka_python_and_quix_streams_get_every_row(filled: FilledTopic, contenders: Contenders, plan: Plan) -> None:
    interpreter = python_of_alternatives(plan)
    assert contenders.kafka_python(filled, interpreter).answer["rows"] == filled.rows
    assert contenders.quix(filled, interpreter).answer["rows"] == filled.rows
    assert list(contenders.home.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("javac"), reason="Kafka Streams needs a JDK")
def test_kafka_streams_restores_every_record_and_leaves_no_group(
    filled: FilledTopic, contenders: Contenders, plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    done = contenders.kafka_streams(filled, compiled_streams(plan, tmp_path_factory.mktemp("classes")))
    assert done.answer["records"] == 2000
    assert list(contenders.home.iterdir()) == []
    groups = filled.connection.admin().list_consumer_groups().result().valid
    assert [group.group_id for group in groups if group.group_id.startswith("bench-")] == []


@pytest.mark.long
def test_replica_gives_rebuild_restart_and_latency_beside_the_alternatives(
    connection: Connection, tmp_path: Path
) -> None:
    # The home of whoever runs the tests: the alternatives' packages are there already, as the jars are.
    line, page = BenchmarkCommand(home=default_home()), tmp_path / "page.md"
    before = list_topics(connection)
    done = line.run(
        *("replica", "--records", "2000", "--rounds", "1", "--json", "--write", str(page)),
        *("--bootstrap-servers", connection.bootstrap_servers),
    )
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    rebuilds = ["lastword", "lastword with 256 MB", "the bare consume loop", "the WriteBatch loop", "kafka-python"]
    rebuilds += ["Quix Streams", *(["Kafka Streams"] if shutil.which("javac") else [])]
    measured = {figure["what"]: figure["median"] for figure in result["figures"]}
    assert {f"overwritten keys, {who}" for who in rebuilds} < set(measured)
    assert {"restart", "latency at 10 writes/s, p50", "latency at 10,000 writes/s, p99"} < set(measured)
    assert all(median > 0 for what, median in measured.items() if not what.startswith("latency"))
    assert [limit["what"] for limit in result["limits"]] == ["restart", "latency at 10 writes/s, p50"]
    assert "| overwritten keys, lastword to the WriteBatch loop |" in page.read_text()
    assert {topic.name for topic in list_topics(connection)} == {topic.name for topic in before}


@pytest.mark.long
def test_http_gives_reads_freshness_and_change_streams_and_leaves_no_server(
    connection: Connection, tmp_path: Path
) -> None:
    reason = why_missing("wrk", "nginx")
    if reason is not None:
        pytest.skip(reason)
    page, folder = tmp_path / "page.md", tmp_path / "temporary"
    folder.mkdir()
    # The home of whoever runs the tests: the alternatives' packages are there already, as the jars are.
    line = BenchmarkCommand(home=default_home(), environ={"TMPDIR": str(folder)})
    before = {topic.name for topic in list_topics(connection)}
    done = line.run(
        *("http", "--records", "500", "--rounds", "1", "--json", "--write", str(page)),
        *("--bootstrap-servers", connection.bootstrap_servers),
        timeout_s=300,
    )
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    measured = {figure["what"]: figure["median"] for figure in result["figures"]}
    assert {f"point reads, {who}" for who in ("lastword", "FastAPI", "nginx")} < set(measured)
    assert {"moderate load, applying: p99", "saturated, at rest: p99", "moderate load: applied"} < set(measured)
    assert {"freshness at 10 writes/s, p50", "freshness at 10,000 writes/s, with min_position, p99"} < set(measured)
    assert {"100 change readers, p99", "100 change readers, p50 from the write"} < set(measured)
    assert all(median > 0 for what, median in measured.items() if "change readers" not in what)
    assert [limit["what"] for limit in result["limits"]] == ["freshness at 10 writes/s, p50"]
    assert result["left_out"] == []
    assert "| p99, applying to at rest, moderate load |" in page.read_text()
    assert {topic.name for topic in list_topics(connection)} == before
    assert list(folder.iterdir()) == []
    assert running_with(folder) == []


@dataclass(frozen=True, kw_only=True)
class NotedSettings(Connection):
    """Its clients are the usual ones; what they are made with is written down."""

    noted: dict[str, dict[str, Any]] = field(default_factory=dict)

    def producer(self, **settings: Any) -> Producer:
        self.noted["producer"] = comparable(self.producer_settings(**settings))
        return super().producer(**settings)

    def consumer(self, **settings: Any) -> Consumer:
        self.noted["consumer"] = comparable(self.consumer_settings(**settings))
        return super().consumer(**settings)


def comparable(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that are of one process alone."""
    left_out = ("bootstrap.servers", "logger")
    return {name: value for name, value in settings.items() if name not in left_out and not callable(value)}


def test_the_alternatives_have_the_client_settings_of_lastword(connection: Connection, topic_name: str) -> None:
    create_topic(connection, topic_name, partitions=1)
    noted = NotedSettings(bootstrap_servers=connection.bootstrap_servers)
    load(noted, topic_name, [Write(b"a", b"1")])
    fold_topic(noted, topic_name)
    assert noted.noted == {"producer": bare_produce.SETTINGS, "consumer": bare_consume.SETTINGS}
