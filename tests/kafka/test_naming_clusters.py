"""Which cluster a verb speaks to: a local one by its name, any by its address, never another than the one meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.client.connection import Connection
from support.command_line import CommandLine

NOBODY = "127.0.0.1:1"


@pytest.fixture
def named(cluster: LocalCluster, tmp_path: Path) -> CommandLine:
    """The command line in a home where the tests' cluster is the local one named `three`."""
    clusters = tmp_path / "home" / "clusters"
    clusters.mkdir(parents=True)
    (clusters / "three").symlink_to(cluster.folder)
    return CommandLine(home=tmp_path / "home")


def test_row_and_topic_verbs_take_a_local_cluster_by_its_name(named: CommandLine, topic_name: str) -> None:
    named("topic", "create", topic_name, "--partitions", "1", "--cluster", "three")
    named("put", topic_name, "a", "1", "--cluster", "three")
    assert named("get", topic_name, "a", "--cluster", "three") == "1\n"
    # Without it the local cluster is still the default one, which does not run here.
    assert named.run("get", topic_name, "a").returncode == 3


def test_the_name_beats_an_environment_that_is_for_another_cluster(named: CommandLine, topic_name: str) -> None:
    other = named.home / "other.properties"
    other.write_text(f"bootstrap.servers={NOBODY}\nsasl.username=eve\n")
    environ = {"LASTWORD_BOOTSTRAP_SERVERS": NOBODY, "LASTWORD_CONFIG": str(other)}
    elsewhere = CommandLine(home=named.home, environ=environ)
    assert elsewhere("topic", "list", "--cluster", "three", "--json") == named(
        "topic", "list", "--cluster", "three", "--json"
    )


def test_two_names_for_the_cluster_are_a_usage_error(named: CommandLine, connection: Connection) -> None:
    done = named.run("count", "t", "--cluster", "three", "--bootstrap-servers", connection.bootstrap_servers)
    assert (done.returncode, done.stderr) == (
        2,
        "lastword: --cluster and --bootstrap-servers choose two clusters: use only one of these options\n",
    )
    config = named.home / "client.properties"
    config.write_text(f"bootstrap.servers={NOBODY}\n")
    done = named.run("count", "t", "--cluster", "three", "--config", str(config))
    assert done.returncode == 2
    assert (
        f"bootstrap.servers in {config} is {NOBODY}, but cluster three is at {connection.bootstrap_servers}"
        in done.stderr
    )


def test_a_name_that_no_cluster_has_is_told_with_the_nearest(named: CommandLine) -> None:
    done = named.run("count", "t", "--cluster", "tree")
    assert (done.returncode, done.stderr) == (1, "lastword: there is no cluster tree: did you mean 'three'?\n")
    done = named.run("count", "t", "--cluster", "wholly-other")
    assert (
        "there is no cluster wholly-other: create it with  lastword broker start --cluster wholly-other" in done.stderr
    )
    assert named.run("count", "t", "--cluster", "../three").returncode == 2


@pytest.mark.parametrize("text", ["", " ", ","])
def test_an_empty_address_is_refused_and_no_other_cluster_is_taken(lastword: CommandLine, text: str) -> None:
    empty = "is empty: set it, or leave it out to use the local cluster"
    done = lastword.run("topic", "list", "--bootstrap-servers", text)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lastword: --bootstrap-servers {empty}\n")
    environ = {**lastword.environ, "LASTWORD_BOOTSTRAP_SERVERS": text}
    done = CommandLine(home=lastword.home, environ=environ).run("topic", "list")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lastword: LASTWORD_BOOTSTRAP_SERVERS {empty}\n")


def test_an_empty_address_in_a_file_and_an_empty_file_name_are_refused(alone: CommandLine) -> None:
    config = alone.home.parent / "client.properties"
    config.write_text("bootstrap.servers=\n")
    done = alone.run("topic", "list", "--config", str(config))
    assert (done.returncode, done.stderr.split(" is empty: ")[0]) == (2, f"lastword: bootstrap.servers in {config}")
    done = alone.run("topic", "list", "--config", "")
    assert (done.returncode, done.stderr.split(" is empty: ")[0]) == (2, "lastword: --config")
