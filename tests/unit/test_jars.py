"""The lock and the cache of jars, without a network: what must fetch meets a closed port."""

from __future__ import annotations

import fcntl
import hashlib
import threading
from pathlib import Path
from queue import Queue

import pytest

from lastword.core.errors import BadLine, JarsUnavailable
from lastword.jvm.jars import Jar, JarLock, broker_jar_lock, committed_lock, ensure_jars, parse_lock
from lastword.jvm.java import Java, find_java

NO_JAVA = Java(executable=Path("/nowhere/java"), version=17, origin="PATH")
CONTENTS = {"apple": b"an apple", "plum": b"a plum!!", "pear": b"a pear!!"}


def jar(artifact: str, content: bytes) -> Jar:
    sha256 = hashlib.sha256(content).hexdigest()
    return Jar(group="org.fruit", artifact=artifact, version="1.0", sha256=sha256, size=len(content))


FRUIT = JarLock(name="broker", jars=tuple(jar(artifact, content) for artifact, content in CONTENTS.items()))


def fill(cache: Path) -> Path:
    """The cache with every jar of FRUIT as locked; gives their folder."""
    folder = cache / FRUIT.folder_name
    folder.mkdir(parents=True)
    for locked in FRUIT.jars:
        (folder / locked.filename).write_bytes(CONTENTS[locked.artifact])
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants out is sent to a port where nobody listens."""
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")


# --- the lock


def test_a_lock_is_read_line_by_line_past_its_comments() -> None:
    lock = parse_lock("broker", f"# made by a script\n\norg.fruit:apple:1.0 {'ab' * 32} 8\n")

    assert lock.jars == (Jar(group="org.fruit", artifact="apple", version="1.0", sha256="ab" * 32, size=8),)


@pytest.mark.parametrize("line", ["org.fruit:apple:1.0 abab", "org.fruit:apple abab 8", "org.fruit:apple:1.0 abab big"])
def test_a_line_that_is_no_jar_is_named_by_its_number(line: str) -> None:
    with pytest.raises(BadLine, match=r"^line 2: .*make the lock again"):
        parse_lock("broker", f"# made by a script\n{line}\n")


def test_another_lock_has_another_folder() -> None:
    changed = JarLock(name="broker", jars=(jar("apple", b"an older apple"), *FRUIT.jars[1:]))

    assert FRUIT.folder_name.startswith("broker-")
    assert len(FRUIT.folder_name) == len("broker-") + 12
    assert changed.folder_name != FRUIT.folder_name


BENCHMARK = committed_lock("benchmarks.alternatives", "benchmark")


@pytest.mark.parametrize("lock", [broker_jar_lock(), BENCHMARK], ids=lambda lock: lock.name)
def test_a_committed_lock_is_sorted_and_names_each_jar_once(lock: JarLock) -> None:
    jars = lock.jars

    assert list(jars) == sorted(jars)
    assert len({(jar.group, jar.artifact) for jar in jars}) == len(jars)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 and jar.size > 0 for jar in jars)


def test_the_committed_lock_has_the_broker_and_its_tools_and_no_web_server() -> None:
    packages = {f"{jar.group}:{jar.artifact}" for jar in broker_jar_lock().jars}

    assert {"org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools"} <= packages
    assert {"org.apache.logging.log4j:log4j-slf4j-impl", "io.prometheus.jmx:jmx_prometheus_javaagent"} <= packages
    assert [name for name in packages if any(part in name for part in ("connect-", "jetty", "jersey", "swagger"))] == []


def test_the_benchmarks_have_the_kafka_of_the_broker() -> None:
    ours = {jar.artifact: jar.version for jar in broker_jar_lock().jars if jar.group == "org.apache.kafka"}
    theirs = {jar.artifact: jar.version for jar in BENCHMARK.jars if jar.group == "org.apache.kafka"}

    assert theirs == {"kafka-clients": ours["kafka-clients"], "kafka-streams": ours["kafka-clients"]}


# --- a warm cache


def test_a_warm_cache_needs_no_java_no_network_and_no_word(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    said: list[str] = []

    paths = ensure_jars(FRUIT, tmp_path, NO_JAVA, said.append)

    assert paths == tuple(folder / f"org.fruit--{name}--1.0.jar" for name in ("apple", "plum", "pear"))
    assert said == []
    assert list(tmp_path.iterdir()) == [folder]


def test_whoever_waited_finds_the_jars_that_the_other_process_fetched(tmp_path: Path) -> None:
    said: Queue[str] = Queue()
    found: list[tuple[Path, ...]] = []
    with (tmp_path / ".lock").open("w") as others_turn:
        fcntl.flock(others_turn, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: found.append(ensure_jars(FRUIT, tmp_path, NO_JAVA, said.put)))
        waiting.start()
        first_word = said.get(timeout=10)
        folder = fill(tmp_path)
    waiting.join(timeout=120)

    assert first_word == "waiting for another process that is fetching the broker's jars"
    assert said.empty()
    assert found == [tuple(folder / jar.filename for jar in FRUIT.jars)]


# --- a cache that lacks something


@pytest.mark.usefixtures("offline")
def test_cold_and_offline_names_what_is_missing_where_it_belongs_and_what_to_do(tmp_path: Path) -> None:
    lock = JarLock(name="broker", jars=tuple(jar(f"fruit-{n}", b"x") for n in range(5)))
    cache = tmp_path / "a cache (of) [josé]"

    with pytest.raises(JarsUnavailable) as raised:
        ensure_jars(lock, cache, find_java(), lambda _: None)

    assert str(raised.value) == (
        "org.fruit:fruit-0:1.0, org.fruit:fruit-1:1.0, org.fruit:fruit-2:1.0 and 2 more jars could not be fetched: "
        f"java.net.ConnectException: Connection refused. The broker's jars belong in {cache / lock.folder_name}: "
        "connect to the internet once, or copy that folder from a machine that has it"
    )
    assert [path.name for path in cache.iterdir()] == [".lock"]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            b"a plum!?",
            f"has the sha256 {hashlib.sha256(b'a plum!?').hexdigest()}, the lock says {FRUIT.jars[1].sha256}",
        ),
        (b"a plu", "has 5 bytes, the lock says 8"),
    ],
)
def test_a_jar_that_is_not_as_locked_is_named_and_the_only_one_fetched(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    folder = fill(tmp_path)
    plum = folder / "org.fruit--plum--1.0.jar"
    plum.write_bytes(content)
    said: list[str] = []

    with pytest.raises(JarsUnavailable, match=r"^org\.fruit:plum:1\.0 could not be fetched"):
        ensure_jars(FRUIT, tmp_path, find_java(), said.append)

    assert said == [f"{plum} {fault}: fetching it again", "fetching the broker's jars: 0 of 1"]
    assert (folder / "org.fruit--pear--1.0.jar").read_bytes() == CONTENTS["pear"]


@pytest.mark.usefixtures("offline")
def test_a_jar_that_is_missing_from_a_warm_cache_is_the_only_one_fetched(tmp_path: Path) -> None:
    (fill(tmp_path) / "org.fruit--plum--1.0.jar").unlink()
    said: list[str] = []

    with pytest.raises(JarsUnavailable, match=r"^org\.fruit:plum:1\.0 could not be fetched"):
        ensure_jars(FRUIT, tmp_path, find_java(), said.append)

    assert said == ["fetching the broker's jars: 0 of 1"]


@pytest.mark.usefixtures("offline")
def test_what_a_dead_fetch_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    half = tmp_path / ".fetch-dead" / "jars" / "org.fruit--apple--1.0.jar"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"an ap")

    with pytest.raises(JarsUnavailable):
        ensure_jars(FRUIT, tmp_path, find_java(), lambda _: None)

    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_made_says_so_and_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(JarsUnavailable, match=r"can't be kept in .*/file/jars: Not a directory: .*LASTWORD_JARS"):
        ensure_jars(FRUIT, tmp_path / "file" / "jars", NO_JAVA, lambda _: None)
