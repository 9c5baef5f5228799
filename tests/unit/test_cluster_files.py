"""A cluster's files without a broker: what is read from them, and what is refused."""

from pathlib import Path

import pytest

from lastword.core.errors import BadInput, BrokerFailed
from lastword.kafka.broker.broker_log import refused_setting, without_frames
from lastword.kafka.broker.cluster_files import (
    BrokerSpec,
    ClusterSpec,
    NodeFiles,
    check_cluster_name,
    check_data_belongs,
    check_settings,
    load_spec,
    new_cluster_id,
    nodes_on_disk,
    save_spec,
    write_settings,
)

BROKER = BrokerSpec(node_id=1, port=20_001, controller_port=20_002)
SPEC = ClusterSpec(name="dev", cluster_id="id-of-dev", brokers=(BROKER,), settings={"log.cleaner.threads": "2"})


def test_a_saved_description_is_read_back(tmp_path: Path) -> None:
    save_spec(tmp_path, SPEC)
    assert load_spec(tmp_path) == SPEC
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_a_cluster_id_never_looks_like_an_option() -> None:
    ids = {new_cluster_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert not any(cluster_id.startswith("-") for cluster_id in ids)


def test_a_folder_without_a_description_has_no_cluster(tmp_path: Path) -> None:
    assert load_spec(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"name": "dev",',
        "[]",
        "7",
        '{"name": "dev"}',
        '{"name": "dev", "cluster_id": "x", "brokers": []}',
        '{"name": "dev", "cluster_id": "x", "brokers": [{"node_id": 1}]}',
        '{"name": "dev", "cluster_id": "x", "brokers": [{"node_id": 1, "port": "a", "controller_port": 2}]}',
        '{"name": "dev", "cluster_id": "x", "brokers": [{"node_id": 1, "port": 1, "controller_port": 2}], "odd": 1}',
    ],
)
def test_a_damaged_description_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(BrokerFailed) as raised:
        load_spec(tmp_path)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'cluster.json'} can't be read (")
    assert "restore it" in message
    assert "\n" not in message


def test_a_description_that_is_a_folder_is_damaged_too(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").mkdir()
    with pytest.raises(BrokerFailed, match="Is a directory"):
        load_spec(tmp_path)


def test_brokers_are_found_by_their_folders_when_the_description_is_gone(tmp_path: Path) -> None:
    for name in ("node-2", "node-1", "node-10", "node-x", "nodes"):
        (tmp_path / name).mkdir()
    assert list(nodes_on_disk(tmp_path)) == [1, 2, 10]


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", ".hidden", "a b", "é", "x" * 65])
def test_a_cluster_name_that_could_leave_the_home_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_cluster_name(name)


@pytest.mark.parametrize("name", ["listeners", "node.id", "log.dirs", "controller.quorum.voters"])
def test_a_setting_that_holds_the_cluster_together_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="lastword sets this one itself"):
        check_settings({name: "1"})


@pytest.mark.parametrize("name", ["a b", "a=b", "a:b", "#a", "a\nlisteners"])
def test_what_would_not_be_a_name_in_a_properties_file_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not the name of a setting"):
        check_settings({name: "1"})


def test_a_setting_that_is_a_number_is_refused_before_it_is_in_a_description() -> None:
    with pytest.raises(BadInput, match=r"num\.partitions is 3: give it as text, like '3'"):
        check_settings({"num.partitions": 3})  # type: ignore[dict-item]


def test_values_are_written_as_java_reads_them(tmp_path: Path) -> None:
    spec = ClusterSpec(name="dev", cluster_id="x", brokers=(BROKER,), settings={"a.b": " c\\d é 日 🦆\n#=:"})
    files = NodeFiles(folder=tmp_path / "node-1")
    write_settings(files, spec, BROKER, {})
    assert files.properties.read_text().splitlines()[-1] == (
        r"a.b=\u0020c\u005cd\u0020\u00e9\u0020\u65e5\u0020\ud83e\udd86\u000a#=:"
    )


def test_a_data_folder_with_a_comma_is_refused_because_kafka_would_see_two(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has a comma"):
        write_settings(NodeFiles(folder=tmp_path / "a,b" / "node-1"), SPEC, BROKER, {})


@pytest.mark.parametrize(
    ("told", "name"),
    [("cluster.id=another\nnode.id=1", "cluster.id is another"), ("cluster.id=id-of-dev\nnode.id=2", "node.id is 2")],
)
def test_data_of_another_cluster_or_broker_is_refused(tmp_path: Path, told: str, name: str) -> None:
    files = NodeFiles(folder=tmp_path)
    files.data.mkdir()
    (files.data / "meta.properties").write_text(f"#comment=1\nversion=1\n{told}\n")
    with pytest.raises(BrokerFailed, match=name):
        check_data_belongs(files, SPEC, BROKER)


def test_data_that_is_not_formatted_belongs_to_nobody_yet(tmp_path: Path) -> None:
    assert check_data_belongs(NodeFiles(folder=tmp_path), SPEC, BROKER) is False


def test_the_tail_is_the_last_lines_of_the_log_and_then_of_the_jvm(tmp_path: Path) -> None:
    files = NodeFiles(folder=tmp_path)
    files.log.write_text("".join(f"line {n}\n" for n in range(10_000)))
    files.output.write_text("jvm\n")
    assert files.log_tail(3) == ("line 9998", "line 9999", "jvm")
    assert files.log_tail(0) == ()
    # More than one page of the file.
    assert files.log_tail(5_001)[:2] == ("line 5000", "line 5001")


def test_the_tail_since_a_start_leaves_out_an_earlier_life(tmp_path: Path) -> None:
    files = NodeFiles(folder=tmp_path)
    assert files.log_size() == 0
    files.log.write_text("Address already in use\n")
    before = files.log_size()
    assert files.log_tail(since=before) == ()
    with files.log.open("a") as log:
        log.write("another reason\n")
    assert files.log_tail(since=before) == ("another reason",)
    files.log.write_text("rolled\n")
    assert files.log_tail(since=before) == ("rolled",)


def test_a_refused_setting_is_found_above_the_frames_of_its_stack_trace() -> None:
    said = without_frames(
        [
            "2026-01-01 ERROR Exiting Kafka due to fatal exception (Kafka$)",
            "org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration log.cleaner.threads",
            "\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:787)",
            "\t... 3 more",
            "",
        ]
    )
    assert len(said) == 2
    assert refused_setting(said) == (
        "Kafka refuses a setting: Invalid value abc for configuration log.cleaner.threads: "
        "correct it with --set NAME=VALUE"
    )
    assert refused_setting(said[:1]) is None
