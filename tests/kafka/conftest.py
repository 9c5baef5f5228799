"""A real cluster for the tests of this folder: started once, on free ports, gone with the test run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lastword.core.home import default_home, default_jars
from lastword.kafka.connection import Connection
from lastword.kafka.local import LocalCluster
from lastword.kafka.topic_description import list_topics
from lastword.kafka.topics import delete_topic

JARS = default_jars(default_home())


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with LocalCluster(name="tests", folder=folder, jars=JARS, owned=True, temporary=True) as local:
        local.start(port=0)
        yield local


@pytest.fixture(scope="session")
def connection(cluster: LocalCluster) -> Connection:
    assert cluster.spec is not None
    return Connection(bootstrap_servers=cluster.spec.bootstrap_servers)


@pytest.fixture
def topic_name(connection: Connection) -> Iterator[str]:
    """A name that no other test uses; a topic of that name is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    if any(topic.name == name for topic in list_topics(connection)):
        delete_topic(connection, name)


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """The command `lastword` as a user runs it: a process of its own, with a home of its own."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def start(self, *words: str, **pipes: int) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command(words), env=self.environment(), text=True, **pipes)

    def run(self, *words: str, given: str | None = None, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(words), env=self.environment(), input=given, capture_output=True, text=True, timeout=timeout_s
        )

    def __call__(self, *words: str, given: str | None = None) -> str:
        """The output of a command that must succeed."""
        done = self.run(*words, given=given)
        assert done.returncode == 0, f"lastword {' '.join(words)} gave {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LASTWORD_")}
        return {**kept, "LASTWORD_HOME": str(self.home), "LASTWORD_JARS": str(JARS), **self.environ}

    @staticmethod
    def _command(words: tuple[str, ...]) -> list[str]:
        return [str(Path(sys.executable).parent / "lastword"), *words]


@pytest.fixture
def lastword(connection: Connection, tmp_path: Path) -> CommandLine:
    """The command line, pointed at the tests' cluster."""
    return CommandLine(home=tmp_path / "home", environ={"LASTWORD_BOOTSTRAP_SERVERS": connection.bootstrap_servers})


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line with no cluster at all; one that a test starts is stopped afterwards."""
    line = CommandLine(home=tmp_path / "home")
    yield line
    for folder in (line.home / "clusters").glob("*"):
        LocalCluster(name=folder.name, folder=folder, jars=JARS).stop()


def eventually(is_so: Callable[[], bool], *, within_s: float = 30) -> None:
    """Waits until it is so, and fails when it is not in time."""
    give_up_at = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up_at, f"still not so after {within_s} s"
        time.sleep(0.05)
