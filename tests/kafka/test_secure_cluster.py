"""A local cluster that lets in only who has a password and a right."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lastword.api.table import Table
from lastword.core.errors import AlreadyExists, BadInput, BrokerFailed, ClusterUnreachable, LastwordError, NotFound
from lastword.core.row_json import Write
from lastword.kafka.broker.local_cluster import LocalCluster
from lastword.kafka.broker.security import login_like
from lastword.kafka.broker.users import ClusterUser, Rights, add_user, list_users, remove_user
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.kafka.client.writing import Writer
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.serve.cluster.cluster_answers import ServedCluster
from lastword.serve.cluster.topic_counts import BEING_COUNTED
from lastword.serve.http.answers import Refused
from support.command_line import JARS, CommandLine
from support.waiting import eventually


@pytest.fixture(scope="module")
def secure() -> Iterator[LocalCluster]:
    # Not below pytest's folder, into which nobody else gets.
    with (
        TemporaryDirectory() as place,
        LocalCluster(name="secure", folder=Path(place) / "cluster", jars=JARS, owned=True) as cluster,
    ):
        Path(place).chmod(0o755)
        cluster.start(port=0, security="scram-tls")
        for topic in ("orders", "news", "secret"):
            create_topic(cluster.connection, topic, partitions=1)
        yield cluster


@pytest.fixture
def ann(secure: LocalCluster) -> Iterator[Connection]:
    """She may read orders as the group ann, and write news."""
    password = add_user(secure.connection, "ann", Rights(read=("orders",), write=("news",), groups=("ann",)))
    yield with_login(secure.connection, "ann", password)
    remove_user(secure.connection, "ann")


def with_login(connection: Connection, name: str, password: str) -> Connection:
    properties = login_like(connection.properties, name, password)
    return Connection(bootstrap_servers=connection.bootstrap_servers, properties=properties)


def with_settings(connection: Connection, **others: str | None) -> Connection:
    settings = {**connection.properties, **{name.replace("_", "."): value for name, value in others.items()}}
    kept = {name: value for name, value in settings.items() if value is not None}
    return Connection(bootstrap_servers=connection.bootstrap_servers, properties=kept, patience_s=3)


def test_its_administrator_is_let_in_and_nobody_else(secure: LocalCluster) -> None:
    admin = secure.connection

    assert len(admin.reach().brokers) == 1
    for settings, reason in (
        ({"sasl_password": "wrong"}, "does not let 'admin' in: the user or the password is wrong: check sasl.username"),
        ({"sasl_username": "nobody"}, "does not let 'nobody' in: the user or the password is wrong"),
        ({"ssl_ca_location": None}, "TLS: broker certificate could not be verified"),
        ({"security_protocol": "plaintext"}, "if it asks for a login, give client settings with --config"),
    ):
        with pytest.raises(ClusterUnreachable, match=reason):
            with_settings(admin, **settings).reach()


def test_what_has_passwords_only_its_owner_can_read_and_nothing_else_has_them(secure: LocalCluster) -> None:
    passwords = json.loads((secure.folder / "secrets.json").read_text()).values()
    holders = set()
    for path in secure.folder.rglob("*"):
        if path.is_file() and any(password.encode() in path.read_bytes() for password in passwords):
            holders.add(path.relative_to(secure.folder).as_posix())
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(set(passwords)) == 3
    assert holders == {"secrets.json", "client.properties", "node-1/server.properties"}
    assert stat.S_IMODE((secure.folder / "tls" / "server.p12").stat().st_mode) == 0o600


def test_another_user_of_the_machine_reads_neither_its_records_nor_a_replica_of_them(secure: LocalCluster) -> None:
    place = secure.folder.parent
    (place / "for everyone").write_text("hello")
    with Table(secure.connection, "orders") as orders:
        orders.put("o-1", {"card": "4929-0000-1111-2222"})
        with orders.replica(folder=place / "replica") as replica:
            assert replica["o-1"] == {"card": "4929-0000-1111-2222"}
    [segment] = secure.folder.glob("node-1/data/orders-0/*.log")
    rows, *_ = place.glob("replica/store-*/*.sst")
    assert b"4929-0000-1111-2222" in segment.read_bytes()
    for path in (secure.folder, place / "replica"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert segment.stat().st_mode & 0o077 == 0
    if os.geteuid() == 0:
        assert read_as_nobody(place / "for everyone") == "hello"
        for path in (segment, rows, secure.folder / "tls" / "ca.pem", secure.folder / "cluster.json"):
            with pytest.raises(PermissionError):
                read_as_nobody(path)


def read_as_nobody(path: Path) -> str:
    done = subprocess.run(["cat", path], user=65_534, group=65_534, extra_groups=[], capture_output=True, text=True)
    if "Permission denied" in done.stderr:
        raise PermissionError(path)
    return done.stdout


def test_a_user_does_what_its_rights_say(secure: LocalCluster, ann: Connection) -> None:
    with Table(secure.connection, "orders") as orders, Table(ann, "news") as news:
        orders.put("o-1", {"cents": 5})
        ack = news.put("n-1", {"title": "x"})

    _, end = log_bounds(ann, "orders")
    assert [record.key for batch in read_log(ann, "orders") for record in batch][-1] == b"o-1"
    GroupPosition(ann, "ann").commit({"orders": end})
    assert ack.partition == 0
    assert set(ann.reach().topics) == {"orders", "news"}


def test_a_missing_right_is_named(secure: LocalCluster, ann: Connection) -> None:
    with Table(secure.connection, "news") as news:
        news.put("n-1", {"title": "x"})
    with Table(ann, "orders") as orders, pytest.raises(LastwordError, match="needs the right Write on the topic"):
        orders.put("o-1", {})
    with pytest.raises(LastwordError, match="reading news: not allowed: it needs the right Read on the topic"):
        list(read_log(ann, "news"))
    with pytest.raises(NotFound, match=r"no topic 'secret' at .*, or 'ann' lacks the right Describe on it"):
        ann.topic("secret")
    with pytest.raises(LastwordError, match="creating topic 'mine': not allowed: it needs the right Create"):
        create_topic(ann, "mine", partitions=1)
    with pytest.raises(LastwordError, match="deleting topic 'orders': not allowed: it needs the right Delete"):
        delete_topic(ann, "orders")
    with pytest.raises(LastwordError, match="needs the right Read on the consumer group"):
        GroupPosition(ann, "others").commit({"orders": log_bounds(ann, "orders")[1]})
    with pytest.raises(LastwordError, match="needs the right Write on the transactional id"):
        Transactions(ann, "mine").write([], OutgoingRecord("news", b"v", b"k"))
    with pytest.raises(LastwordError, match="needs the rights Describe and Alter on the cluster"):
        list_users(ann)
    with pytest.raises(LastwordError, match="needs the rights Describe and Alter on the cluster"):
        add_user(ann, "bob", Rights(read=("orders",)))


def test_a_writer_that_may_write_nowhere_names_the_right_each_time(secure: LocalCluster) -> None:
    password = add_user(secure.connection, "ben", Rights(read=("orders",)))
    ben = with_login(secure.connection, "ben", password)
    writer = Writer(ben, "orders")
    # The first refusal ends the producer, and later ones come from a producer that says only that it has ended.
    for _ in range(2):
        with pytest.raises(
            LastwordError, match="writing to orders: not allowed: it needs the right Write on the topic"
        ):
            writer.write(b"a", b"1")
    (outcome,) = writer.write_all([Write(b"a", b"1")])
    remove_user(secure.connection, "ben")

    assert "it needs the right Write on the topic" in str(outcome)
    assert writer.is_spent


def test_users_are_listed_and_gone_when_they_are_removed(secure: LocalCluster) -> None:
    admin, rights = secure.connection, Rights(read=("orders",), groups=("bob",))
    password = add_user(admin, "bob", rights)
    bob = with_settings(admin, sasl_username="bob", sasl_password=password)

    assert ClusterUser(name="bob", rights=rights) in list_users(admin)
    assert "admin" not in [user.name for user in list_users(admin)]
    assert list(bob.reach().topics) == ["orders"]
    with pytest.raises(AlreadyExists, match="lastword broker user remove bob"):
        add_user(admin, "bob", Rights(write=("news",)))
    remove_user(admin, "bob")

    assert "bob" not in [user.name for user in list_users(admin)]
    with pytest.raises(ClusterUnreachable, match="does not let 'bob' in"):
        bob.reach()
    with pytest.raises(NotFound, match="no user 'bob'"):
        remove_user(admin, "bob")


def test_a_user_that_is_made_again_has_only_its_new_rights(secure: LocalCluster) -> None:
    admin = secure.connection
    add_user(admin, "cy", Rights(read=("orders",)))
    remove_user(admin, "cy")
    add_user(admin, "cy", Rights(write=("news",)))

    assert [user.rights for user in list_users(admin) if user.name == "cy"] == [Rights(write=("news",))]
    remove_user(admin, "cy")


@pytest.mark.parametrize("name", ["", "a b", "User:x", "../x", "admin", "a" * 101])
def test_a_name_that_no_user_can_have_is_refused(secure: LocalCluster, name: str) -> None:
    with pytest.raises(BadInput, match="user name"):
        add_user(secure.connection, name, Rights(read=("orders",)))


@pytest.mark.parametrize(
    "rights", [Rights(read=("*",)), Rights(write=("a b",)), Rights(read=("",)), Rights(groups=("*",))]
)
def test_a_right_on_what_is_no_name_is_refused(secure: LocalCluster, rights: Rights) -> None:
    with pytest.raises(BadInput):
        add_user(secure.connection, "dan", rights)


def test_a_password_is_saved_before_it_is_valid(secure: LocalCluster) -> None:
    def fail(_: str) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        add_user(secure.connection, "dan", Rights(read=("orders",)), fail)
    remove_user(secure.connection, "dan")


@pytest.mark.long
def test_a_cluster_whose_passwords_are_gone_gets_no_new_ones(tmp_path: Path) -> None:
    with LocalCluster(name="bare", folder=tmp_path / "cluster", jars=JARS, owned=True) as cluster:
        cluster.start(port=0, security="scram")
        cluster.stop()
        (tmp_path / "cluster" / "secrets.json").rename(tmp_path / "secrets.json")
        client = (tmp_path / "cluster" / "client.properties").read_text()
        with pytest.raises(BrokerFailed, match=r"secrets.json can't be read.*restore it"):
            cluster.start()
        assert (tmp_path / "cluster" / "client.properties").read_text() == client


@pytest.mark.parametrize("setting", ["allow.everyone.if.no.acl.found", "sasl.enabled.mechanisms", "super.users"])
def test_what_locks_it_can_not_be_set(tmp_path: Path, setting: str) -> None:
    with (
        LocalCluster(name="bare", folder=tmp_path / "cluster", jars=JARS, owned=True) as cluster,
        pytest.raises(BadInput, match="lastword sets this one itself"),
    ):
        cluster.start(port=0, security="scram", settings={setting: "true"})


def test_a_user_without_any_right_is_refused(secure: LocalCluster) -> None:
    with pytest.raises(BadInput, match="would have no right at all: give it one with --read, --write or --group"):
        add_user(secure.connection, "dan", Rights())


def test_broker_start_secure_and_its_users_as_commands(alone: CommandLine) -> None:
    said = alone("broker", "start", "--secure", "--port", "0")
    config = alone.home / "clusters" / "default" / "client.properties"
    login = f"the cluster asks for a password; log in as its administrator with  --config {config}"
    assert said.splitlines()[-1] == login
    # The local cluster is its administrator's.
    alone("topic", "create", "orders", "--partitions", "1")
    alone("put", "orders", "o-1", '{"cents": 5}')
    made = alone("broker", "user", "add", "ann", "--read", "orders", "--group", "ann")
    (file,) = (alone.home / "accounts").glob("*/ann.properties")
    assert made.splitlines() == [
        "user ann: read orders; group ann",
        f"its client settings, with the password: {file}",
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert alone("get", "orders", "o-1", "--config", str(file)) == '{"cents": 5}\n'
    refused = alone.run("put", "orders", "o-2", "{}", "--config", str(file))
    assert (refused.returncode, refused.stderr.splitlines()[:-1]) == (1, [])
    assert "writing to orders: not allowed: it needs the right Write on the topic" in refused.stderr
    assert json.loads(alone("broker", "user", "list", "--json")) == {
        "user": "ann",
        "read": ["orders"],
        "write": [],
        "groups": ["ann"],
    }
    assert "ann   read orders; group ann" in alone("broker", "user", "list")
    assert alone("broker", "user", "remove", "ann") == "user ann: removed\n"
    assert not file.exists()

    # What it is stays, also when it is killed and started again.
    (broker,) = LocalCluster(name="default", folder=config.parent, jars=JARS).status()
    assert broker.pid is not None
    os.kill(broker.pid, 9)
    alone("broker", "start")
    assert alone("get", "orders", "o-1") == '{"cents": 5}\n'
    alone("broker", "stop")
    other = alone.run("broker", "start", "--secure", "--tls")
    assert other.returncode == 2
    assert "cluster default was made with --secure, which can't change" in other.stderr


def test_verbs_find_the_login_of_a_cluster_by_its_name_and_users_are_made_by_the_settings_of_the_environment(
    secure: LocalCluster, tmp_path: Path
) -> None:
    (tmp_path / "home" / "clusters").mkdir(parents=True)
    (tmp_path / "home" / "clusters" / "guarded").symlink_to(secure.folder)
    line = CommandLine(home=tmp_path / "home")
    line("put", "orders", "by-name", "1", "--cluster", "guarded")
    assert line("get", "orders", "by-name", "--cluster", "guarded") == "1\n"
    line("broker", "user", "add", "eve", "--read", "orders", "--cluster", "guarded")

    # In a home without a cluster.
    elsewhere = CommandLine(home=tmp_path / "other", environ={"LASTWORD_CONFIG": str(secure.client_file)})
    assert "eve" in elsewhere("broker", "user", "list")
    assert elsewhere("broker", "user", "remove", "eve") == "user eve: removed\n"


def test_a_cluster_that_is_open_has_no_users(alone: CommandLine) -> None:
    alone("broker", "start", "--port", "0")

    for words in (("broker", "user", "list"), ("broker", "user", "add", "ann", "--read", "x")):
        refused = alone.run(*words)
        assert refused.returncode == 2
        assert "has no passwords and no users" in refused.stderr
    team = alone.run("team", "add", "team-16")
    assert team.returncode == 2
    assert "a team needs no account there" in team.stderr
    made = alone.run("broker", "start", "--secure")
    assert "cluster default was made open to everyone on this machine, which can't change" in made.stderr
    assert alone.run("broker", "start", "--tls").returncode == 2


@pytest.mark.long
def test_three_brokers_know_each_other_by_password_over_tls(tmp_path: Path) -> None:
    with LocalCluster(name="three", folder=tmp_path / "cluster", jars=JARS, owned=True) as cluster:
        cluster.start(brokers=3, port=0, security="scram-tls")
        create_topic(cluster.connection, "orders", partitions=3, replication=3)
        with Table(cluster.connection, "orders") as orders:
            orders.put("o-1", {"cents": 5})
            assert orders.get("o-1") == {"cents": 5}


def test_a_server_tells_what_its_user_may_see_and_which_right_is_missing_for_the_rest(
    secure: LocalCluster, ann: Connection
) -> None:
    with Table(secure.connection, "news") as news:
        # Where there is nothing to read, no right is missing.
        news.put("n-1", 1)
    served = ServedCluster(ann, [])
    served.start()
    try:
        eventually(lambda: json.loads(served.answer().body)["state"] == "connected")
        body = served.answer().body

        def why_not_counted() -> str:
            return str(json.loads(served.topic_answer("news").body)["census_why"])

        eventually(lambda: why_not_counted() != BEING_COUNTED)
        assert "it needs the right Read on the topic" in why_not_counted()
        with pytest.raises(Refused, match="no topic of this name"):
            served.topic_answer("secret")
    finally:
        served.close()
    told = json.loads(body)
    topics = {topic["name"]: topic for topic in told["topics"]}
    assert set(topics) == {"orders", "news"}
    assert topics["orders"]["start_to_end"] is not None
    assert (topics["orders"]["cleanup_policy"], topics["orders"]["bytes"]) == (None, None)
    assert "the right DescribeConfigs on the topic" in told["why"]
    assert "the right DESCRIBE on the cluster" in told["why"]
    assert str(ann.properties["sasl.password"]).encode() not in body
